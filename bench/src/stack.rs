//! Which HTTP the client, the relay and the sink speak, and one connection of the client.
//!
//! They share the cores with the server, and the limits are made of them: the same stack serves all of a run.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::ValueEnum;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::wire::Wire;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stack {
    /// The `hyper` library, as in an ordinary program.
    Hyper,
    /// Hand-written for these messages alone: what the sockets themselves allow.
    Bare,
}

impl Stack {
    /// How it is said on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Hyper => "hyper",
            Self::Bare => "bare",
        }
    }
}

/// Where a client posts to.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: String,
    pub(crate) path: &'static str,
    /// Sent as a bearer token.
    pub(crate) key: Option<&'static str>,
}

impl Target {
    /// A sink or a relay.
    pub(crate) fn plain(address: &str) -> Self {
        Self { address: address.to_owned(), path: "/ok/0", key: None }
    }
}

/// One keep-alive connection that posts JSON to one target.
pub(crate) enum Line {
    Hyper { sender: SendRequest<Full<Bytes>>, path: &'static str, headers: HeaderMap },
    Bare { wire: Wire, head: String, buffer: Vec<u8> },
}

impl Line {
    pub(crate) async fn connect(stack: Stack, target: &Target) -> Result<Self> {
        let Target { address, path, key } = target;
        let token = key.map(|key| format!("Bearer {key}"));
        if stack == Stack::Bare {
            let key = token.map(|token| format!("authorization: {token}\r\n")).unwrap_or_default();
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: {address}\r\n{key}content-type: application/json\r\ncontent-length: "
            );
            return Ok(Self::Bare { wire: Wire::connect(address).await?, head, buffer: Vec::new() });
        }
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(address)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, HeaderValue::from_str(&token)?);
        }
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self::Hyper { sender, path, headers })
    }

    /// Posts a body and waits for the answer: its status and its body.
    pub(crate) async fn post(&mut self, body: Vec<u8>) -> Result<(u16, Bytes)> {
        match self {
            Self::Hyper { sender, path, headers } => {
                let mut request = http::Request::new(Full::new(Bytes::from(body)));
                *request.method_mut() = http::Method::POST;
                *request.uri_mut() = http::Uri::from_static(path);
                *request.headers_mut() = headers.clone();
                sender.ready().await?;
                let answer = sender.send_request(request).await?;
                let status = answer.status().as_u16();
                Ok((status, answer.into_body().collect().await?.to_bytes()))
            }
            Self::Bare { wire, head, buffer } => {
                buffer.clear();
                buffer.extend_from_slice(head.as_bytes());
                buffer.extend_from_slice(body.len().to_string().as_bytes());
                buffer.extend_from_slice(b"\r\n\r\n");
                buffer.extend_from_slice(&body);
                wire.write(buffer).await?;
                let answer = wire.read().await?.context("the connection was closed without an answer")?;
                let status = wire.status(&answer);
                if status == 0 {
                    bail!("the answer has no status");
                }
                Ok((status, Bytes::copy_from_slice(wire.body(&answer))))
            }
        }
    }
}
