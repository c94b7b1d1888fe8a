/** The console's files by name. The bundler replaces this module with the built console; from the sources there is none. */
export const WEB_ASSETS: ReadonlyMap<string, Uint8Array> = new Map()
