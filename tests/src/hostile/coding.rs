//! Bodies with a content coding that become much larger.

use flate2::write::GzEncoder;
use flate2::{Compress, Compression, FlushCompress};
use std::io::Write;

/// Returns the text in gzip.
pub(super) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).and_then(|()| encoder.finish()).expect("a vector takes all")
}

/// The beginning of a member of gzip.
const GZIP: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\xff";

/// Returns a body in gzip with this text, and then a part of it, of a MiB, this many times. It
/// takes about a thousandth of that, and has no end.
pub(super) fn bomb(start: &str, part: &str, mebibytes: usize) -> Vec<u8> {
    let block = |text: &[u8]| {
        let mut coded = Vec::with_capacity(64 << 10);
        let mut compress = Compress::new(Compression::best(), false);
        // Nothing after it refers to anything before it.
        compress.compress_vec(text, &mut coded, FlushCompress::Full).expect("any text");
        assert!(compress.total_in() == text.len() as u64 && coded.len() < coded.capacity());
        coded
    };
    let many = part.repeat((1 << 20) / part.len());
    [GZIP, &block(start.as_bytes()), &block(many.as_bytes()).repeat(mebibytes)].concat()
}

/// Returns a body in gzip of empty blocks.
pub(super) fn nothing(blocks: usize) -> Vec<u8> {
    [GZIP, &b"\0\0\0\xff\xff".repeat(blocks)].concat()
}
