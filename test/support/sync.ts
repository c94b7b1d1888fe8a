/** Measures how far sound and pictures of the test source are apart: a beep and a flash at each whole second (app/media/PROTOCOL.md). */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { cellSize } from './frames.ts'

const run = promisify(execFile)
/** Frames of 5 ms. */
const STEP_SAMPLES = 240
const LOUD_DB = -20
const PAIR_WITHIN_S = 0.4

/** A beep or a flash so near to a cut may be the rest of one. */
const CUT_WITHIN_S = 0.3

/** Seconds by which each beep of the file is later than the flash that belongs to it, in order; `cuts`: where something is left out, in seconds. */
export async function beepsAfterFlashes(file: string, width: number, cuts: readonly number[] = []): Promise<number[]> {
  const whole = (time: number) => cuts.every((cut) => Math.abs(time - cut) > CUT_WITHIN_S)
  const [beeps, flashes] = await Promise.all([beepTimes(file), flashTimes(file, width)])
  return beeps.filter(whole).flatMap((beep) => {
    const offsets = flashes.map((flash) => beep - flash).sort((a, b) => Math.abs(a) - Math.abs(b))
    const [nearest] = offsets
    return nearest !== undefined && Math.abs(nearest) < PAIR_WITHIN_S ? [nearest] : []
  })
}

/** Where the level rises above the hum. */
export async function beepTimes(file: string): Promise<number[]> {
  const graph = `amovie=${file},aformat=sample_rates=48000,asetnsamples=${STEP_SAMPLES},astats=metadata=1:reset=1`
  return rises(await frames(graph, 'lavfi.astats.Overall.RMS_level'), LOUD_DB)
}

/** The first picture of each second, with the time it carries. */
export async function flashTimes(file: string, width: number): Promise<number[]> {
  const cell = cellSize(width)
  const square = `crop=${cell}:${cell}:${width - 2.5 * cell}:${3.5 * cell}`
  return rises(await frames(`movie=${file},${square},signalstats`, 'lavfi.signalstats.YAVG'), 128)
}

interface Level {
  readonly at: number
  readonly value: number
}

async function frames(graph: string, tag: string): Promise<Level[]> {
  const entries = `frame=pts_time:frame_tags=${tag}`
  const args = ['-v', 'error', '-f', 'lavfi', '-i', graph, '-show_entries', entries, '-of', 'json']
  const { stdout } = await run('ffprobe', args, { maxBuffer: 2 ** 26 })
  const parsed = JSON.parse(stdout) as { frames: { pts_time: string; tags?: Record<string, string> }[] }
  return parsed.frames.map(({ pts_time, tags }) => ({
    at: Number(pts_time),
    value: Number(tags?.[tag]?.replace('-inf', '-100')),
  }))
}

function rises(levels: readonly Level[], threshold: number): number[] {
  return levels.filter(({ value }, i) => value > threshold && (levels[i - 1]?.value ?? threshold) < threshold).map(({ at }) => at)
}
