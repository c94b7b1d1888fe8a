/** Whether this device may install that update. Pure. */
import { ApiError, Conflict, UnsupportedSetting } from '../errors.ts'
import { compareVersions } from './version.ts'

/** What is known of a release before anything of it is written. */
export interface Candidate {
  readonly version: string | null
  readonly compatible: string | null
  /** Null: nobody has looked, as the bundle is still on its server. */
  readonly valid: boolean | null
  /** Why it is not valid. */
  readonly problem: string | null
}

/** Of a candidate whose bundle is still on its server. */
export const NOT_YET_LOOKED_AT = { valid: null, problem: null }

export interface Rules {
  readonly version: string
  readonly compatible: string
  readonly allowDowngrade: boolean
}

/** The reason not to; null: it may be installed. */
export function refusal({ version, compatible, valid, problem }: Candidate, rules: Rules): ApiError | null {
  if (valid === false) return new ApiError('INVALID_FORMAT', `This is no bundle that this device trusts: ${problem}`, 'update_id')
  if (version === null || compatible === null)
    return new ApiError('INVALID_FORMAT', 'The bundle names no version or no device', 'update_id')
  if (compatible !== rules.compatible)
    return new UnsupportedSetting('body.update_id', `The update is for ${compatible}; this device is ${rules.compatible}`)
  if (rules.allowDowngrade) return null
  const order = compareVersions(version, rules.version)
  if (order === null)
    return new Conflict(
      `Nobody can say whether ${version} is newer than ${rules.version}; allow_downgrade would let it in`,
      'allow_downgrade',
    )
  if (order < 0)
    return new Conflict(`${version} is older than ${rules.version}; allow_downgrade would let it in`, 'allow_downgrade')
  return null
}

/** Offered as an update, not only as something that could be installed. */
export function isNewer(candidate: Candidate, rules: Rules): boolean {
  if (refusal(candidate, rules) !== null) return false
  return (compareVersions(candidate.version ?? '', rules.version) ?? 0) > 0
}
