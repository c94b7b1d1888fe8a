/** What `rauc info` says of a bundle. Pure, and believes nothing: it comes from a file that anybody may have made. */

export interface BundleInfo {
  readonly version: string | null
  readonly compatible: string | null
  readonly build: string | null
  readonly description: string | null
}

const MAX_TEXT = 256

/** Null where it is no description of a bundle. Some releases of RAUC put these fields into `update`. */
export function parseBundleInfo(output: string): BundleInfo | null {
  const whole = objectOf(parseJson(output))
  if (whole === null) return null
  const update = objectOf(whole.update) ?? whole
  const text = (name: string): string | null => {
    const value = update[name]
    return typeof value === 'string' && value !== '' ? value.slice(0, MAX_TEXT) : null
  }
  const info = {
    version: text('version'),
    compatible: text('compatible'),
    build: text('build'),
    description: text('description'),
  }
  return info.compatible === null ? null : info
}

/** RAUC's last word, which says why it refuses. */
export function reasonOf(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '' && !/^rauc-Message/.test(line))
  return (lines.at(-1) ?? 'rauc refuses it without a word').slice(0, MAX_TEXT)
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function objectOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null
}
