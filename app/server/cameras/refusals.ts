/** What the helper refuses, in the API's words. */
import { ApiError, CameraNotConnected, UnsupportedSetting } from '../errors.ts'
import { HELPER_ERROR, HelperDown, HelperError, HelperTimeout } from '../media/index.ts'

/** Runs a call of the helper and puts its refusal into the API's words. */
export async function ask<T>(id: number, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw helperToApi(error, id)
  }
}

/** A refusal of the helper, as the client should read it. */
export function helperToApi(error: unknown, camera: number): unknown {
  if (error instanceof HelperDown || error instanceof HelperTimeout) return new CameraNotConnected(camera)
  if (!(error instanceof HelperError)) return error
  if (error.code === HELPER_ERROR.no_signal || error.code === HELPER_ERROR.not_found) return new CameraNotConnected(camera)
  if (error.code === HELPER_ERROR.unsupported) return new UnsupportedSetting(error.data.field ?? 'camera', error.message)
  if (error.code === HELPER_ERROR.busy) {
    return new ApiError('SERVICE_UNAVAILABLE', 'The camera is busy; try again', error.message, { 'Retry-After': '1' })
  }
  if (error.data.errno === 'ENOSPC') return new ApiError('INSUFFICIENT_STORAGE', 'The disk is full', error.message)
  return error
}
