/** Every error that a client may meet: its code, its HTTP status, and who is to blame. Thrown where known, mapped to HTTP once. */

export const ERROR_STATUS = {
  CAMERA_NOT_CONNECTED: 503,
  INVALID_RESOLUTION: 422,
  INSUFFICIENT_STORAGE: 503,
  RECORDING_IN_PROGRESS: 409,
  INVALID_CREDENTIALS: 401,
  PERMISSION_DENIED: 403,
  FILE_NOT_FOUND: 404,
  INVALID_FORMAT: 422,
  INVALID_REQUEST: 400,
  UNSUPPORTED_SETTING: 422,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  PAYLOAD_TOO_LARGE: 413,
  RATE_LIMITED: 429,
  PASSWORD_CHANGE_REQUIRED: 403,
  ACCOUNT_LOCKED: 403,
  OTP_REQUIRED: 401,
  RANGE_NOT_SATISFIABLE: 416,
  SERVICE_UNAVAILABLE: 503,
  INTERNAL_ERROR: 500,
} as const

export type ErrorCode = keyof typeof ERROR_STATUS

/** An answer to the client. `details` names the field or the limit; it is never a stack trace. */
export class ApiError extends Error {
  readonly status: number

  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly details = '',
    /** Headers that the answer must carry (`Allow`, `Retry-After`, `WWW-Authenticate`). */
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message)
    this.name = 'ApiError'
    this.status = ERROR_STATUS[code]
  }
}

/** The request is malformed; `field` is the path of the offending value, such as `body.fps`. */
export class InvalidRequest extends ApiError {
  constructor(field: string, why: string) {
    super('INVALID_REQUEST', why, field)
  }
}

export class NotFound extends ApiError {
  constructor(what: string) {
    super('NOT_FOUND', `${what} does not exist`, what)
  }
}

export class Conflict extends ApiError {
  constructor(message: string, details = '') {
    super('CONFLICT', message, details)
  }
}

export class PermissionDenied extends ApiError {
  constructor(needed: string) {
    super('PERMISSION_DENIED', 'Your role does not allow this', needed)
  }
}

export class InvalidCredentials extends ApiError {
  constructor(message = 'Credentials are missing or invalid') {
    super('INVALID_CREDENTIALS', message)
  }
}

/** The file is there, but the operating system keeps it from the server. */
export function unreadable(): ApiError {
  return new ApiError('PERMISSION_DENIED', 'The server is not allowed to read this file', 'file')
}

/** Valid, but this device cannot do it. */
export class UnsupportedSetting extends ApiError {
  constructor(field: string, why: string) {
    super('UNSUPPORTED_SETTING', why, field)
  }
}

export class CameraNotConnected extends ApiError {
  constructor(camera: number) {
    super('CAMERA_NOT_CONNECTED', `Camera ${camera} delivers no picture`, `camera ${camera}`)
  }
}

/** Something that the process cannot start with: printed as one line, exit status 2. */
export class StartupError extends Error {}

/** The text of anything thrown, for logs. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
