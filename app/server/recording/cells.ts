/**
 * Cells: all entries of one camera, type and state that are or are not tagged share a number. Any filter over these is a set of cells,
 * whose entries lie in time order each.
 */
import { MEDIA_STATES, MEDIA_TYPES, type MediaState, type MediaType, type RecordingRow } from './row.ts'

export interface CellFilter {
  /** Absent or null: all. */
  readonly cameras?: readonly number[] | null
  readonly types?: readonly MediaType[]
  readonly states?: readonly MediaState[]
  readonly tagged?: boolean
}

const TAGGED = 2
const STATES = 4
const TYPES = 8

export function cellOf(row: Pick<RecordingRow, 'camera' | 'media_type' | 'state' | 'tag_markers'>): number {
  const tagged = row.tag_markers > 0 ? 1 : 0
  const state = MEDIA_STATES.indexOf(row.state)
  const type = MEDIA_TYPES.indexOf(row.media_type)
  return ((row.camera * TYPES + type) * STATES + state) * TAGGED + tagged
}

export function cellMatches(cell: number, { cameras, types, states, tagged }: CellFilter): boolean {
  const state = MEDIA_STATES[Math.floor(cell / TAGGED) % STATES]
  const type = MEDIA_TYPES[Math.floor(cell / (TAGGED * STATES)) % TYPES]
  const camera = Math.floor(cell / (TAGGED * STATES * TYPES))
  return (
    (tagged === undefined || (cell % TAGGED === 1) === tagged) &&
    (states === undefined || (state !== undefined && states.includes(state))) &&
    (types === undefined || (type !== undefined && types.includes(type))) &&
    (cameras === undefined || cameras === null || cameras.includes(camera))
  )
}
