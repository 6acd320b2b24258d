//! The feature `gzip` as a value, and DEFLATE (RFC 1951), which `miniz_oxide` implements. Code for
//! content codings compiles without the feature, and cannot run.

/// Evidence that the feature `gzip` is on. Without it the type has no value. The tests of this
/// crate always have content codings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GzipSupport(#[cfg(not(any(test, feature = "gzip")))] core::convert::Infallible);

/// One step of a decoder: the number of bytes that it has used, its output, and whether the data
/// has ended, or why it cannot go on.
pub(super) type DecodeStep<'a> = (usize, &'a [u8], Result<bool, &'static str>);

#[cfg(any(test, feature = "gzip"))]
pub(super) use on::Inflate;

#[cfg(any(test, feature = "gzip"))]
mod on {
    use super::{DecodeStep, GzipSupport};
    use crate::frame::coding::CHECKSUM;
    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use core::fmt;
    use miniz_oxide::deflate::core::{
        CompressorOxide, TDEFLFlush, TDEFLStatus, compress_to_output, create_comp_flags_from_zip_params,
    };
    use miniz_oxide::inflate::TINFLStatus;
    use miniz_oxide::inflate::core::inflate_flags::{
        TINFL_FLAG_COMPUTE_ADLER32, TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_PARSE_ZLIB_HEADER,
    };
    use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

    /// Distance to which DEFLATE refers back, in bytes.
    const WINDOW: usize = 32 << 10;

    /// The level of compression: the fastest one. A connection compresses a response while others
    /// wait for its thread.
    const LEVEL: i32 = 1;

    impl GzipSupport {
        /// Returns `None` without the feature `gzip`.
        pub(crate) const fn get() -> Option<Self> {
            Some(Self())
        }

        /// Returns a decoder of DEFLATE, or of zlib (RFC 1950) around it.
        pub(in super::super) fn inflate(self, is_zlib: bool) -> Inflate {
            let format = if is_zlib { TINFL_FLAG_PARSE_ZLIB_HEADER | TINFL_FLAG_COMPUTE_ADLER32 } else { 0 };
            Inflate {
                state: Box::default(),
                window: alloc::vec![0; WINDOW].into(),
                at: 0,
                flags: format | TINFL_FLAG_HAS_MORE_INPUT,
            }
        }

        /// Appends the text as DEFLATE. Returns false, with a part of it written, if it takes more
        /// than `max` bytes with what is there.
        pub(in super::super) fn deflate(self, text: &[u8], out: &mut Vec<u8>, max: usize) -> bool {
            // A negative number of bits is no zlib around it.
            let mut state = CompressorOxide::new(create_comp_flags_from_zip_params(LEVEL, -15, 0));
            let (status, _) = compress_to_output(&mut state, text, TDEFLFlush::Finish, |part| {
                let fits = part.len() <= max.saturating_sub(out.len());
                if fits {
                    out.extend_from_slice(part);
                }
                fits
            });
            status == TDEFLStatus::Done
        }
    }

    /// A decoder of DEFLATE. Its output is a part of its window, so it needs no more memory for it.
    pub(in super::super) struct Inflate {
        state: Box<DecompressorOxide>,
        window: Box<[u8]>,
        /// Where the next byte goes.
        at: usize,
        flags: u32,
    }

    impl Inflate {
        /// Bytes that a decoder holds.
        pub(in super::super) const HELD: usize = WINDOW + size_of::<DecompressorOxide>();

        /// Decodes some bytes. After output there may be more of it without further bytes.
        pub(in super::super) fn step(&mut self, bytes: &[u8]) -> DecodeStep<'_> {
            let (status, used, written) = decompress(&mut self.state, bytes, &mut self.window, self.at, self.flags);
            let output = &self.window[self.at..self.at + written];
            self.at = (self.at + written) % WINDOW;
            let is_done = match status {
                TINFLStatus::NeedsMoreInput | TINFLStatus::HasMoreOutput => Ok(false),
                TINFLStatus::Done => Ok(true),
                TINFLStatus::Adler32Mismatch => Err(CHECKSUM),
                _ => Err("the coded body is not deflate"),
            };
            (used, output, is_done)
        }

        /// Begins with other data.
        pub(in super::super) fn restart(&mut self) {
            self.state.init();
            self.at = 0;
        }
    }

    impl fmt::Debug for Inflate {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Inflate").field("at", &self.at).finish_non_exhaustive()
        }
    }
}

#[cfg(not(any(test, feature = "gzip")))]
pub(super) use off::Inflate;

#[cfg(not(any(test, feature = "gzip")))]
mod off {
    use super::{DecodeStep, GzipSupport};
    use alloc::vec::Vec;

    impl GzipSupport {
        pub(crate) const fn get() -> Option<Self> {
            None
        }

        pub(in super::super) fn inflate(self, _is_zlib: bool) -> Inflate {
            match self.0 {}
        }

        pub(in super::super) fn deflate(self, _text: &[u8], _out: &mut Vec<u8>, _max: usize) -> bool {
            match self.0 {}
        }
    }

    #[derive(Debug)]
    pub(in super::super) struct Inflate(core::convert::Infallible);

    impl Inflate {
        pub(in super::super) const HELD: usize = 0;

        pub(in super::super) fn step(&mut self, _bytes: &[u8]) -> DecodeStep<'_> {
            match self.0 {}
        }

        pub(in super::super) fn restart(&mut self) {
            match self.0 {}
        }
    }
}
