//! Requests with a content coding that hold more than they seem to, or not what they claim.

use super::ask::Ask;
use super::parts::{closes, each, keeps, large_row, met, met_with, row};
use crate::hostile::Row;
use crate::hostile::coding::{bomb, gzip, nothing};
use flate2::Compression;
use flate2::write::{DeflateEncoder, ZlibEncoder};
use std::io::Write;

pub(super) const ROWS: &[Row] = &[
    row("asks with a coded body", |b| {
        let text = Ask::mark().content();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(&text).and_then(|()| deflate.write_all(&text)).map_err(|e| e.to_string())?;
        let (zlib, deflate) = (zlib.finish().map_err(|e| e.to_string())?, deflate.finish().map_err(|e| e.to_string())?);
        let cases = [("gzip", gzip(&text)), ("X-Gzip", gzip(&text)), ("deflate", zlib), ("deflate", deflate)];
        let cases = cases.map(|(name, body)| (name.to_owned(), coded(name, body)));
        each(b, |_| {}, cases, &keeps(&[200]))
    }),
    row("asks with a coded bomb", |b| met(b, coded("gzip", bomb("", " ", 1024)), &closes(&[413]))),
    row("asks with a coded bomb of arrays", |b| met(b, coded("gzip", bomb("", "[", 1024)), &closes(&[413]))),
    large_row("asks with a coded body of just the limit", |b| {
        let text = Ask::mark().content();
        let padded = [text.clone(), vec![b' '; (4 << 20) - text.len()]].concat();
        met(b, coded("gzip", gzip(&padded)), &keeps(&[200]))?;
        met(b, coded("gzip", gzip(&[padded, vec![b' ']].concat())), &closes(&[413]))
    }),
    row("asks with a coded body of empty blocks", |b| met(b, coded("gzip", nothing(1 << 15)), &closes(&[400]))),
    row("asks with a coded body that is not what it claims", |b| {
        let whole = gzip(&Ask::mark().content());
        let mut wrong = whole.clone();
        let checksum = wrong.len() - 8;
        wrong[checksum] ^= 1;
        let more = [&whole[..], b"x"].concat();
        let cut = whole[..whole.len() - 1].to_vec();
        let cases = [("no gzip", Ask::mark().content()), ("cut short", cut), ("wrong", wrong), ("more", more)];
        each(b, |_| {}, cases.map(|(name, body)| (name.to_owned(), coded("gzip", body))), &closes(&[400]))
    }),
    row("asks with a coded body where that is off", |b| {
        let body = gzip(&Ask::mark().content());
        met_with(b, |config| config.compression = false, coded("gzip", body), &closes(&[415]))
    }),
];

fn coded(coding: &str, body: Vec<u8>) -> Vec<u8> {
    Ask::mark().set("Content-Encoding", coding).body(body).bytes()
}
