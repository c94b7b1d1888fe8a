/** Set by the bundler; running from the sources, the build is the time of the start. */
declare const CAMERA_VERSION: string | undefined
declare const CAMERA_BUILD: string | undefined

export const VERSION = typeof CAMERA_VERSION === 'string' ? CAMERA_VERSION : '0.0.0-dev'
/** ISO 8601. */
export const BUILD = typeof CAMERA_BUILD === 'string' ? CAMERA_BUILD : new Date().toISOString()
