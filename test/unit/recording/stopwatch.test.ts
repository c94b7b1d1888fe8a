import t from 'tap'
import { Stopwatch } from '../../../app/server/recording/stopwatch.ts'

t.test('pauses do not count, and are counted', async (t) => {
  let now = 1000
  const watch = new Stopwatch(() => now)
  watch.pause()
  watch.resume()
  now += 100
  t.same([watch.ms, watch.pausedMs], [0, 0], 'it has not begun')
  watch.begin(50)
  now += 450
  watch.pause()
  now += 300
  t.same([watch.ms, watch.pausedMs], [500, 300])
  watch.pause()
  watch.resume()
  watch.resume()
  now += 200
  t.same([watch.ms, watch.pausedMs], [700, 300])
})
