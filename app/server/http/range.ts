/** The `Range` header of a request for a part of a file. */

export interface ByteRange {
  readonly start: number
  /** Inclusive, as in the header. */
  readonly end: number
}

/**
 * `whole`: there is no range, or one that a server may ignore (other units, several ranges, bad syntax). `unsatisfiable`: the range
 * lies beyond the end.
 */
export function parseRange(header: string, size: number): ByteRange | 'whole' | 'unsatisfiable' {
  const match = /^\s*bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(header)
  if (match === null) return 'whole'
  const [, from = '', to = ''] = match
  if (from === '') {
    if (to === '') return 'whole'
    const last = Number(to)
    if (last === 0 || size === 0) return 'unsatisfiable'
    return { start: Math.max(0, size - last), end: size - 1 }
  }
  const start = Number(from)
  const end = to === '' ? size - 1 : Math.min(Number(to), size - 1)
  if (to !== '' && Number(to) < start) return 'whole'
  return start >= size ? 'unsatisfiable' : { start, end }
}
