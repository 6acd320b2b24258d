//! The request of a client to a proxy for a tunnel, and the response (RFC 9110 section 9.3.6).

use super::ByteQueue;
use super::head::{self, Gather, GivenFields, OwnFields};
use crate::exchange::Headers;
use crate::http_support::HttpSupport;
use crate::limits::FrameLimits;
use crate::short_queue::ShortQueue;
use alloc::string::String;
use alloc::sync::Arc;
use bytes::Bytes;

/// The codec of a connection to a proxy until its tunnel is open.
#[derive(Debug)]
pub(crate) struct ConnectCodec {
    _support: HttpSupport,
    limits: Arc<FrameLimits>,
    input: ByteQueue,
    gather: Gather,
}

/// The beginning of every response.
const HTTP: &[u8] = b"HTTP/";
const NOT_HTTP: &str = "its response is not HTTP";

impl ConnectCodec {
    /// Returns the codec, and the request. `authority` is host and port of the server.
    /// `authorization` is the value of `Proxy-Authorization`.
    pub(crate) fn new(
        authority: &str,
        authorization: Option<&str>,
        limits: Arc<FrameLimits>,
        support: HttpSupport,
    ) -> (Self, Bytes) {
        let mut headers = Headers::new().with("Host", authority);
        if let Some(authorization) = authorization {
            headers.push("Proxy-Authorization", authorization);
        }
        let mut out = ShortQueue::new();
        let fields = GivenFields::new(&headers).unwrap_or(GivenFields::NONE);
        let first_line = ["CONNECT ", authority, " HTTP/1.1"];
        head::write_head(&mut out, &first_line, &fields, &OwnFields::default(), Bytes::new());
        let codec = Self { _support: support, limits, input: ByteQueue::default(), gather: Gather::default() };
        (codec, out.pop_front().unwrap_or_default())
    }

    /// Adds bytes that were read.
    pub(crate) fn bytes(&mut self, bytes: Bytes) {
        self.input.push(bytes);
    }

    /// Returns the status of the final response. Of a success, nothing but the head belongs to the
    /// response, whatever lengths its fields state.
    pub(crate) fn poll_status(&mut self) -> Result<Option<u16>, String> {
        loop {
            let gathered = self.gather.poll(&mut self.input, &self.limits);
            if !self.gather.begins_with(HTTP) {
                return Err(NOT_HTTP.into());
            }
            let Some(bytes) = gathered.map_err(|defect| String::from(defect.why))? else { return Ok(None) };
            if !bytes.starts_with(HTTP) {
                return Err(NOT_HTTP.into());
            }
            let read = head::read_response(&bytes, &self.limits).map_err(|defect| String::from(defect.why))?;
            match read.0 {
                101 => return Err("it switched protocols, which was not asked for".into()),
                100..200 => self.gather.skip_interim(bytes.len(), &self.limits)?,
                status => return Ok(Some(status)),
            }
        }
    }

    /// Returns whether bytes follow the response.
    pub(crate) fn has_more(&self) -> bool {
        !self.input.is_empty()
    }
}
