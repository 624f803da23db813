//! Bodies that travel over a link.

use crate::handle::{Closing, RequestError};
use bytes::{Buf, Bytes};
use h2::{RecvStream, SendStream};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio_util::task::AbortOnDropHandle;

/// The body of a worker's answer. Dropping it early tells the worker to stop.
pub struct LinkBody {
    stream: RecvStream,
    closing: Arc<Closing>,
    /// Sends the rest of the request's body; it ends with this one.
    upload: Option<AbortOnDropHandle<()>>,
    data_ended: bool,
}

impl LinkBody {
    pub(crate) fn new(stream: RecvStream, closing: Arc<Closing>, upload: Option<AbortOnDropHandle<()>>) -> Self {
        Self { stream, closing, upload, data_ended: false }
    }
}

impl fmt::Debug for LinkBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkBody").field("uploading", &self.upload.is_some()).finish_non_exhaustive()
    }
}

impl Body for LinkBody {
    type Data = Bytes;
    type Error = RequestError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, RequestError>>> {
        if !self.data_ended {
            match ready!(self.stream.poll_data(cx)) {
                Some(Ok(data)) => {
                    // flow control goes by what was handed on; it fails only when the stream is gone anyway
                    let _ = self.stream.flow_control().release_capacity(data.len());
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(self.closing.why(&error)))),
                None => self.data_ended = true,
            }
        }
        let trailers: Option<HeaderMap> = match ready!(self.stream.poll_trailers(cx)) {
            Ok(trailers) => trailers,
            Err(error) => return Poll::Ready(Some(Err(self.closing.why(&error)))),
        };
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_end_stream() { SizeHint::with_exact(0) } else { SizeHint::default() }
    }
}

/// The body of a request, sent piece by piece. Dropping it early tells the worker that it is not whole.
pub struct LinkSender {
    stream: SendStream<Bytes>,
}

impl LinkSender {
    pub(crate) fn new(stream: SendStream<Bytes>) -> Self {
        Self { stream }
    }

    /// Sends a piece when the worker has room for it now. Without room, or when the link has ended, nothing is sent and
    /// it says false.
    pub fn try_send(&mut self, piece: Bytes) -> bool {
        self.stream.reserve_capacity(piece.len());
        self.stream.capacity() >= piece.len() && self.stream.send_data(piece, false).is_ok()
    }
}

impl fmt::Debug for LinkSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkSender")
    }
}

/// Sends a request's body as the worker has room for it; stops when the worker wants no more.
pub(crate) async fn upload<B>(mut body: Pin<Box<B>>, mut stream: SendStream<Bytes>)
where
    B: Body<Data = Bytes> + Send,
    B::Error: Send,
{
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            _ = poll_fn(|cx| stream.poll_reset(cx)) => return,
        };
        let frame = match frame {
            Some(Ok(frame)) => frame,
            // half a body must not pass for a whole one
            Some(Err(_)) => return stream.send_reset(h2::Reason::CANCEL),
            None => {
                let _ = stream.send_data(Bytes::new(), true);
                return;
            }
        };
        let frame = match frame.into_data() {
            Ok(data) => {
                if send_all(&mut stream, data).await.is_none() {
                    return;
                }
                continue;
            }
            Err(frame) => frame,
        };
        if let Ok(trailers) = frame.into_trailers() {
            let _ = stream.send_trailers(trailers);
            return;
        }
    }
}

/// `None` when the stream has ended.
async fn send_all(stream: &mut SendStream<Bytes>, mut data: Bytes) -> Option<()> {
    while data.has_remaining() {
        let room = poll_fn(|cx| poll_room(stream, data.len(), cx)).await?;
        stream.send_data(data.split_to(room.min(data.len())), false).ok()?;
    }
    Some(())
}

/// How much of `wanted` bytes may be sent now, at least one; `None` when the stream has ended.
pub(crate) fn poll_room(stream: &mut SendStream<Bytes>, wanted: usize, cx: &mut Context<'_>) -> Poll<Option<usize>> {
    stream.reserve_capacity(wanted);
    loop {
        // the poll tells of room that was added, so what is there already has to be asked for first
        let room = stream.capacity();
        if room > 0 {
            return Poll::Ready(Some(room));
        }
        match ready!(stream.poll_capacity(cx)) {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Poll::Ready(None),
        }
    }
}
