import { execFileSync } from 'node:child_process'
import { copyFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { readFinishedAvi, repairAvi } from '../../../app/server/recording/avi.ts'
import { judgeFile } from '../../../app/server/recording/finish.ts'
import { scratchFolder } from '../../support/scratch.ts'

const folder = scratchFolder(t, 'avi')
const SECONDS = 4
const FPS = 25
const INDEX_ENTRY = 16

function make(name: string, ...codecs: string[]): string {
  const path = join(folder, name)
  const picture = ['-f', 'lavfi', '-i', `testsrc2=s=320x240:r=${FPS}:d=${SECONDS}`]
  const sound = ['-f', 'lavfi', '-i', `sine=d=${SECONDS}`]
  execFileSync('ffmpeg', ['-v', 'error', '-y', ...picture, ...sound, ...codecs, path])
  return path
}

const h264 = make('h264.avi', '-c:v', 'libx264', '-g', '12', '-bf', '0', '-c:a', 'pcm_s16le')
const mjpeg = make('mjpeg.avi', '-c:v', 'mjpeg', '-c:a', 'pcm_s16le')
const whole = [h264, mjpeg]

/** What an independent reader finds. */
function probe(path: string): { frames: number; seconds: number } {
  const show = ['-count_packets', '-show_entries', 'stream=nb_read_packets,duration', '-select_streams', 'v', '-of', 'json']
  const { streams } = JSON.parse(execFileSync('ffprobe', ['-v', 'quiet', ...show, path], { encoding: 'utf8' }))
  return { frames: Number(streams[0].nb_read_packets), seconds: Number(streams[0].duration) }
}

/** Time of the first picture after a seek. */
function seek(path: string, seconds: number): number {
  const args = ['-v', 'quiet', '-read_intervals', `${seconds}%+#1`, '-show_entries', 'packet=dts_time', '-select_streams', 'v']
  const { packets } = JSON.parse(execFileSync('ffprobe', [...args, '-of', 'json', path], { encoding: 'utf8' }))
  return Number(packets[0].dts_time)
}

function copy(path: string, name: string, cut?: number): string {
  const made = join(folder, name)
  copyFileSync(path, made)
  if (cut !== undefined) truncateSync(made, cut)
  return made
}

t.test('a finished file tells its duration in its header', async (t) => {
  for (const path of whole) {
    t.same(await readFinishedAvi(path), { durationMs: SECONDS * 1000, frames: SECONDS * FPS, width: 320, height: 240 })
    t.match(await judgeFile(path), { state: 'ready', durationMs: SECONDS * 1000, sizeBytes: statSync(path).size })
  }
  t.equal(await readFinishedAvi(copy(h264, 'short.avi', statSync(h264).size - 1)), null)
})

t.test('a file cut anywhere is mended: what is whole plays, its duration is right, it can be sought in', async (t) => {
  for (const [i, path] of whole.entries()) {
    const { size } = statSync(path)
    for (const share of [0.99, 0.8, 0.5, 0.25]) {
      const cut = Math.floor(size * share)
      const torn = copy(path, `torn-${i}-${cut}.avi`, cut)
      const verdict = await judgeFile(torn)
      t.equal(verdict.state, 'ready')
      const found = probe(torn)
      t.equal(Math.round((verdict.durationMs / 1000) * FPS), found.frames, 'what we count is what plays')
      t.ok(Math.abs(found.seconds * 1000 - verdict.durationMs) <= 1, `${found.seconds} s in the header`)
      t.ok(found.frames >= Math.floor(share * SECONDS * FPS) - 12, `${found.frames} frames of a share of ${share}`)
      t.ok(verdict.sizeBytes <= cut + 8 + INDEX_ENTRY * 4 * found.frames, 'it grows by its index at most')
      t.ok(Math.abs(seek(torn, 0.5) - 0.5) <= 0.5)
      t.match(await readFinishedAvi(torn), { frames: found.frames }, 'it is whole now')
      const again = readFileSync(torn)
      await repairAvi(torn)
      t.ok(again.equals(readFileSync(torn)), 'mending twice changes nothing')
    }
  }
})

t.test('sizes and counts that were never written are written', async (t) => {
  const path = copy(h264, 'unwritten.avi', Math.floor(statSync(h264).size * 0.7))
  const bytes = readFileSync(path)
  const movi = bytes.indexOf('movi', 0, 'latin1')
  for (const at of [4, movi - 4, bytes.indexOf('avih', 0, 'latin1') + 8 + 16]) bytes.writeUInt32LE(0, at)
  writeFileSync(path, bytes)
  const verdict = await judgeFile(path)
  const { frames, seconds } = probe(path)
  t.ok(frames > 50)
  t.equal(verdict.durationMs, Math.round((frames / FPS) * 1000))
  t.equal(Math.round(seconds * 1000), verdict.durationMs)
  execFileSync('ffmpeg', ['-v', 'error', '-xerror', '-i', path, '-map', '0:v', '-f', 'null', '-'])
})

t.test('OpenDML: what goes on in RIFF AVIX counts', async (t) => {
  const bytes = readFileSync(h264)
  const movi = bytes.indexOf('movi', 0, 'latin1')
  const chunks = bytes.subarray(movi + 4, movi - 4 + 4 + bytes.readUInt32LE(movi - 4))
  const head = Buffer.alloc(24)
  head.write('RIFF', 0)
  head.writeUInt32LE(16 + chunks.length, 4)
  head.write('AVIXLIST', 8)
  head.writeUInt32LE(4 + chunks.length, 16)
  head.write('movi', 20)
  const path = join(folder, 'opendml.avi')
  writeFileSync(path, Buffer.concat([bytes, head, chunks]))
  t.equal((await repairAvi(path))?.frames, 2 * SECONDS * FPS)
  t.equal(probe(path).frames, 2 * SECONDS * FPS)
  truncateSync(path, statSync(path).size - 20_000)
  const mended = await repairAvi(path)
  t.ok((mended?.frames ?? 0) > SECONDS * FPS && (mended?.frames ?? 0) < 2 * SECONDS * FPS)
  t.equal(probe(path).frames, mended?.frames)
})

t.test('what holds no picture is defect, and stays as it is', async (t) => {
  const path = copy(h264, 'head.avi', 300)
  t.match(await judgeFile(path), { state: 'defect', sizeBytes: 300 })
  t.equal(statSync(path).size, 300)
  writeFileSync(path, 'this is no video at all')
  t.match(await judgeFile(path), { state: 'defect' })
})

t.test('damaged or invented bytes never crash the reader, tire it, or blow the file up', async () => {
  const bytes = readFileSync(mjpeg).subarray(0, 60_000)
  const path = join(folder, 'damaged.avi')
  const check = async (content: Buffer) => {
    writeFileSync(path, content)
    await readFinishedAvi(path)
    const began = performance.now()
    const found = await repairAvi(path)
    const grown = statSync(path).size - content.length
    return performance.now() - began < 10_000 && grown <= 8 + (INDEX_ENTRY * content.length) / 8 && (found?.frames ?? 1) > 0
  }
  const damage = fc.record({ at: fc.nat(12_000), value: fc.integer({ min: 0, max: 255 }) })
  await fc.assert(
    fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 20 }), fc.nat(bytes.length), async (hits, cut) => {
      const content = Buffer.from(bytes.subarray(0, cut))
      for (const { at, value } of hits) if (at < content.length) content[at] = value
      return check(content)
    }),
    { numRuns: 150 },
  )
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), (tail) => check(Buffer.concat([bytes.subarray(0, 6000), tail]))),
    { numRuns: 100 },
  )
})
