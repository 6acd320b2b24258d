//! The checksum of gzip (RFC 1952 section 8). The few lines here save a crate that is fast only
//! with unsafe code.

/// A checksum of the bytes so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crc32(u32);

/// Number of bytes that one step takes.
const STEP: usize = 8;

/// `TABLES[n][b]` is the effect of the byte `b` with `n` bytes after it.
static TABLES: [[u32; 256]; STEP] = tables();

const fn tables() -> [[u32; 256]; STEP] {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let (mut value, mut bit) = (byte as u32, 0);
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ POLYNOMIAL } else { value >> 1 };
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut after = 1;
    while after < STEP {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[after - 1][byte];
            tables[after][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        after += 1;
    }
    tables
}

impl Crc32 {
    pub(super) const fn new() -> Self {
        Self(!0)
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        let mut steps = bytes.chunks_exact(STEP);
        for step in &mut steps {
            let first = self.0.to_le_bytes();
            let mixed = |at: usize| usize::from(step[at] ^ first.get(at).copied().unwrap_or(0));
            self.0 = (0..STEP).fold(0, |value, at| value ^ TABLES[STEP - 1 - at][mixed(at)]);
        }
        for byte in steps.remainder() {
            self.0 = self.0 >> 8 ^ TABLES[0][usize::from(self.0 as u8 ^ byte)];
        }
    }

    pub(super) const fn value(self) -> u32 {
        !self.0
    }
}
