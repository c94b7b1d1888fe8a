export { Auth, type AuthOptions, FACTORY_PASSWORD, FACTORY_USERNAME } from './auth.ts'
export { sameOrigin } from './credentials.ts'
export { RtspAccess } from './rtsp-access.ts'
export { RTSP_REALM } from './users.ts'
