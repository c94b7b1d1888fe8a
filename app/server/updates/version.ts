/** Versions as semver.org orders them. Pure. */

interface Version {
  readonly numbers: readonly number[]
  /** Empty: a release, which comes after all that led to it. */
  readonly pre: readonly string[]
}

const PATTERN =
  /^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?$/

function parse(text: string): Version | null {
  const [, major, minor, patch, pre] = PATTERN.exec(text) ?? []
  if (major === undefined) return null
  return { numbers: [major, minor, patch].map(Number), pre: pre?.split('.') ?? [] }
}

/** Below, at or above 0; null where one of them is no version, so that nobody can say which is newer. */
export function compareVersions(left: string, right: string): number | null {
  const a = parse(left)
  const b = parse(right)
  if (a === null || b === null) return null
  for (const [i, number] of a.numbers.entries()) {
    const difference = number - (b.numbers[i] ?? 0)
    if (difference !== 0) return difference
  }
  if (a.pre.length === 0 || b.pre.length === 0) return Math.min(1, b.pre.length) - Math.min(1, a.pre.length)
  for (let i = 0; i < Math.max(a.pre.length, b.pre.length); i++) {
    const difference = compareIdentifiers(a.pre[i], b.pre[i])
    if (difference !== 0) return difference
  }
  return 0
}

/** Numbers come before words, what is missing before both. */
function compareIdentifiers(a: string | undefined, b: string | undefined): number {
  if (a === b) return 0
  if (a === undefined) return -1
  if (b === undefined) return 1
  const numeric = [a, b].map((text) => /^\d+$/.test(text))
  if (numeric[0] && numeric[1]) return Number(a) - Number(b)
  if (numeric[0] !== numeric[1]) return numeric[0] ? -1 : 1
  return a < b ? -1 : 1
}
