/** The browsable page of the API as static files; text in modules, so that it runs from source and from the bundle alike. */
export function docsAssets(): ReadonlyMap<string, Uint8Array> {
  return new Map()
}
