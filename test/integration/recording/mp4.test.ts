import { execFileSync } from 'node:child_process'
import { copyFileSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { judgeFile, judgeRecording } from '../../../app/server/recording/finish.ts'
import { readFinalisedDuration, readMp4 } from '../../../app/server/recording/mp4.ts'
import type { RecordingRow } from '../../../app/server/recording/row.ts'
import { scratchFolder } from '../../support/scratch.ts'

const folder = scratchFolder(t, 'mp4')
const SECONDS = 4
const FPS = 25

function make(name: string, ...flags: string[]): string {
  const path = join(folder, name)
  const source = ['-f', 'lavfi', '-i', `testsrc2=s=320x240:r=${FPS}:d=${SECONDS}`]
  execFileSync('ffmpeg', ['-v', 'error', '-y', ...source, '-c:v', 'libx264', '-g', '12', '-bf', '0', ...flags, path])
  return path
}

const fragmented = make('fragmented.mp4', '-movflags', 'frag_keyframe+empty_moov+default_base_moof')
/** As the helper's recorder writes it: with the duration in the header and an index at the end. */
const finalised = join(folder, 'finalised.mp4')
const source = [
  `videotestsrc`,
  `num-buffers=${SECONDS * FPS}`,
  '!',
  `video/x-raw,width=320,height=240,framerate=${FPS}/1`,
  '!',
  'x264enc',
  'tune=zerolatency',
]
execFileSync('gst-launch-1.0', [
  '-q',
  ...source,
  '!',
  'h264parse',
  '!',
  'mp4mux',
  'fragment-duration=500',
  '!',
  'filesink',
  `location=${finalised}`,
])
const plain = make('plain.mp4')
/** As exports are. */
const indexFirst = make('index-first.mp4', '-movflags', 'faststart')

/** What an independent reader finds. */
function probe(path: string): { frames: number; seconds: number } {
  const args = ['-v', 'quiet', '-count_packets', '-show_entries', 'stream=nb_read_packets:format=duration', '-of', 'json', path]
  const { streams, format } = JSON.parse(execFileSync('ffprobe', args, { encoding: 'utf8' }))
  return { frames: Number(streams[0].nb_read_packets), seconds: Number(format.duration) }
}

t.test('whole files, fragmented and plain', async (t) => {
  for (const path of [fragmented, plain, indexFirst]) {
    const summary = await readMp4(path)
    t.match(summary, { frames: SECONDS * FPS, durationMs: SECONDS * 1000, width: 320, height: 240 })
    t.equal(summary?.wholeBytes, statSync(path).size)
  }
})

t.test('a file cut anywhere is trimmed to what plays, and ffprobe agrees', async (t) => {
  const size = statSync(fragmented).size
  for (const cut of [size - 1, Math.floor(size * 0.8), Math.floor(size * 0.5), Math.floor(size * 0.3)]) {
    const path = join(folder, `cut-${cut}.mp4`)
    copyFileSync(fragmented, path)
    truncateSync(path, cut)
    const verdict = await judgeFile(path)
    t.equal(verdict.state, 'ready')
    t.ok(verdict.sizeBytes <= cut)
    t.equal(statSync(path).size, verdict.sizeBytes, 'the torn tail is gone')
    const found = probe(path)
    t.equal(Math.round((verdict.durationMs / 1000) * FPS), found.frames)
    t.ok(found.frames >= Math.floor((cut / size) * SECONDS * FPS) - 30)
  }
})

t.test('nothing is cut off a plain file, whole or torn', async (t) => {
  const path = join(folder, 'kept.mp4')
  copyFileSync(indexFirst, path)
  const { size } = statSync(path)
  t.match(await judgeFile(path), { state: 'ready', durationMs: SECONDS * 1000, sizeBytes: size })
  truncateSync(path, size - 1000)
  t.match(await judgeFile(path), { state: 'defect' })
  t.equal(statSync(path).size, size - 1000)
})

t.test('a finalised file tells its duration at its ends, a cut one does not', async (t) => {
  t.equal(await readFinalisedDuration(finalised), SECONDS * 1000)
  t.match(await judgeFile(finalised), { state: 'ready', durationMs: SECONDS * 1000, sizeBytes: statSync(finalised).size })
  t.equal(await readFinalisedDuration(plain), null, 'an MP4 of another kind is read in full')
  const path = join(folder, 'unfinished.mp4')
  copyFileSync(finalised, path)
  truncateSync(path, statSync(finalised).size - 1)
  t.equal(await readFinalisedDuration(path), null)
  t.match(await judgeFile(path), { state: 'ready' })
})

t.test('what holds no picture is defect, and stays as it is', async (t) => {
  const path = join(folder, 'head.mp4')
  writeFileSync(path, readFileSync(fragmented).subarray(0, 100))
  t.match(await judgeFile(path), { state: 'defect', durationMs: 0, sizeBytes: 100 })
  t.equal(statSync(path).size, 100)
  writeFileSync(path, 'this is no video at all')
  t.match(await judgeFile(path), { state: 'defect' })
  t.match(await judgeFile(join(folder, 'missing.mp4')), { state: 'defect', sizeBytes: 0 })
})

t.test('damaged bytes never crash the reader nor make it run away', async () => {
  const bytes = readFileSync(fragmented)
  const path = join(folder, 'damaged.mp4')
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ at: fc.nat(4000), value: fc.integer({ min: 0, max: 255 }) }), { minLength: 1, maxLength: 20 }),
      async (damage) => {
        const copy = Buffer.from(bytes)
        for (const { at, value } of damage) copy[at % copy.length] = value
        writeFileSync(path, copy)
        const summary = await readMp4(path).catch((error: Error) =>
          / box of /.test(error.message) ? null : Promise.reject(error),
        )
        return summary === null || (summary.wholeBytes <= copy.length && summary.frames >= 0)
      },
    ),
    { numRuns: 200 },
  )
})

t.test('parts that were torn off before their first picture go, and the recording plays', async (t) => {
  const head = readFileSync(fragmented).subarray(0, headerBytes(fragmented))
  const first = join(t.testdir(), 'r.mp4')
  const parts = [first, ...[2, 3].map((n) => first.replace('.mp4', `.part${n}.mp4`))]
  copyFileSync(fragmented, first)
  // The part that had just begun, and the one that was opened in advance.
  for (const stub of parts.slice(1)) writeFileSync(stub, head)
  const row = { filename: 'r.mp4', path: '/media/data/recordings/r.mp4', parts: [{}, {}] } as unknown as RecordingRow
  const verdict = await judgeRecording(row, first)
  t.match(verdict, { state: 'ready', parts: [{ filename: 'r.mp4', sha256: null }] })
  t.equal(verdict.parts.length, 1)
  t.same(readdirSync(dirname(first)), ['r.mp4'])

  // A first part is kept, whatever it is worth.
  writeFileSync(first, head)
  t.match(await judgeRecording({ ...row, parts: row.parts.slice(1) }, first), { state: 'defect', durationMs: 0 })
  t.same(readdirSync(dirname(first)), ['r.mp4'])
})

/** Up to the first fragment. */
function headerBytes(path: string): number {
  return readFileSync(path).indexOf('moof') - 4
}
