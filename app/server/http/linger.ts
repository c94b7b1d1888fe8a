/**
 * The answer to a client that is refused while it is still sending (RFC 9112 section 9.6): a connection that is closed with unread bytes
 * is reset, and the client may be told of that alone and never see why. So the answer goes out at once, and what is still on its way is
 * swallowed for a moment.
 */
import type { HttpResponse } from 'uWebSockets.js'

/** Most clients look at the answer by then; one that goes on regardless is cut off. */
const LINGER_MS = 5000
/** A client that sends nothing for so long has stopped. */
const QUIET_MS = 500
const LOOK_MS = 100

/**
 * Sends the body of an answer whose head is written, corked; `res` is nobody else's from now on. The last byte is held back: once it has
 * all of the answer, uWS lets nobody close the connection any more, nor see what comes.
 */
export function endLingering(res: HttpResponse, body: Uint8Array): void {
  const deadline = performance.now() + LINGER_MS
  let heardAt = performance.now()
  let over = false
  const timer = setInterval(() => {
    const now = performance.now()
    if (now >= deadline) res.close()
    else if (now - heardAt >= QUIET_MS) complete()
  }, LOOK_MS)
  const end = () => {
    over = true
    clearInterval(timer)
  }
  const complete = () => {
    end()
    res.cork(() => {
      const [, done] = res.tryEnd(body.subarray(res.getWriteOffset()), body.length)
      if (!done) res.close()
    })
  }
  res.onAborted(end)
  res.onData((_chunk, isLast) => {
    // uWS goes on telling what comes behind the end, where nothing may be done any more.
    if (over) return
    heardAt = performance.now()
    if (isLast) complete()
  })
  res.tryEnd(body.subarray(0, -1), body.length)
  // It may have been told to wait; uWS goes deaf when a connection is resumed that was not paused.
  res.pause()
  res.resume()
}
