/** Long loops on the event loop, in turns with everything else. */
import { setImmediate as nextTurn } from 'node:timers/promises'

/** The items of `source`; after each few milliseconds of them the others have their turn. */
export async function* inTurns<T>(source: Iterable<T>, turnMs = 5): AsyncGenerator<T> {
  let turnEnds = performance.now() + turnMs
  for (const item of source) {
    yield item
    if (performance.now() < turnEnds) continue
    await nextTurn()
    turnEnds = performance.now() + turnMs
  }
}
