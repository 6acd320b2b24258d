//! The two ends of a connection.

use std::io::{Read, Write};

pub(crate) type Reader = Box<dyn Read + Send>;
pub(crate) type Writer = Box<dyn Write + Send>;
