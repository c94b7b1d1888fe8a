/** Which cameras and recordings a request may touch: the one place where an account's or a share link's limits are enforced. */
import { type Caller, seesCamera } from '../caller.ts'
import { InvalidCredentials, PermissionDenied } from '../errors.ts'

type Limits = Pick<Caller, 'cameras' | 'share'>

/** The camera that a request means: the one it names, a share link's own, or the active one. */
export function allowedCamera(caller: Limits | null, named: number | undefined, active: number): number {
  const camera = named ?? caller?.share?.camera ?? active
  if (!caller || !seesCamera(caller, camera)) throw new PermissionDenied(`camera ${camera}`)
  return camera
}

export function allowedRecording<R extends { id: number; camera: number }>(caller: Limits | null, row: R): R {
  const shared = caller?.share?.recording ?? row.id
  if (!caller || !seesCamera(caller, row.camera) || shared !== row.id) throw new PermissionDenied(`recording ${row.id}`)
  return row
}

/** The caller of a route that needs credentials. */
export function required(caller: Caller | null): Caller {
  if (!caller) throw new InvalidCredentials()
  return caller
}
