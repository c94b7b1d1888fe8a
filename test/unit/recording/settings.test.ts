import t from 'tap'
import { recordingCommand } from '../../../app/server/state/recording-command.ts'
import { withTwins } from '../../../app/server/state/recording-settings.ts'

const now: Record<string, unknown> = {
  timelapseInterval: 5000,
  timelapseDuration: 1000,
  timelapseSettings: { interval: 5000, duration: 1000, format: 'mp4' },
  slowMotionFps: 120,
  slowMotionSettings: { captureFps: 120, playbackFps: 30 },
}
const twins = (batch: Record<string, unknown>) => withTwins(batch, (key) => now[key])

t.test('a value that exists twice is one', async (t) => {
  t.same(twins({ fps: 30 }), { fps: 30 })
  t.same(twins({ timelapseInterval: 200 }), {
    timelapseInterval: 200,
    timelapseSettings: { interval: 200, duration: 1000, format: 'mp4' },
  })
  t.match(twins({ timelapseInterval: 200, timelapseDuration: 7000 }), {
    timelapseSettings: { interval: 200, duration: 7000, format: 'mp4' },
  })
  t.match(twins({ slowMotionSettings: { captureFps: 90, playbackFps: 25 } }), { slowMotionFps: 90 })
})

t.test('of two that differ the new one wins', async (t) => {
  const object = { captureFps: 90, playbackFps: 30 }
  t.match(twins({ slowMotionFps: 120, slowMotionSettings: object }), { slowMotionFps: 90, slowMotionSettings: object })
  t.match(twins({ slowMotionFps: 100, slowMotionSettings: now.slowMotionSettings }), {
    slowMotionFps: 100,
    slowMotionSettings: { captureFps: 100 },
  })
  t.match(twins({ slowMotionFps: 100, slowMotionSettings: object }), {
    slowMotionFps: 100,
    slowMotionSettings: { captureFps: 100 },
  })
})

t.test('what the keys ask of the recorder', async (t) => {
  t.equal(recordingCommand({ record: true }, 'stopped'), 'start')
  t.equal(recordingCommand({ record: 'on' }, 'recording'), 'start', 'which is refused')
  t.equal(recordingCommand({ record: false }, 'recording'), 'stop')
  t.equal(recordingCommand({ record: false }, 'stopped'), undefined)
  t.equal(recordingCommand({ recordingState: 'paused' }, 'recording'), 'pause')
  t.equal(recordingCommand({ recordingState: 'paused' }, 'stopped'), 'pause', 'which is refused')
  t.equal(recordingCommand({ recordingState: 'recording' }, 'paused'), 'resume')
  t.equal(recordingCommand({ recordingState: 'stopped' }, 'paused'), 'stop', 'which is refused')
  t.equal(recordingCommand({ fps: 30 }, 'recording'), undefined)
})
