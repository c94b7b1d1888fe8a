/** The browsable page of the API as static files; text in modules, so that it runs from source and from the bundle alike. */
import { PAGE } from './page.ts'
import { SCRIPT } from './script.ts'
import { STYLE } from './style.ts'

export function docsAssets(): ReadonlyMap<string, Uint8Array> {
  const files: [string, string][] = [
    ['docs.html', PAGE],
    ['docs.js', SCRIPT],
    ['docs.css', STYLE],
  ]
  return new Map(files.map(([name, text]) => [name, Buffer.from(text)]))
}
