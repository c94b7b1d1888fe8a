/** A browser for the console's tests, and what it has to complain about. */
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import type { Test } from 'tap'

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]
const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

export async function startBrowser(t: Test): Promise<Browser> {
  const executablePath = process.env.CHROMIUM ?? PROGRAMS.find((path) => existsSync(path))
  if (executablePath === undefined) throw new Error('No Chromium; install it, or name it in CHROMIUM')
  const browser = await chromium.launch({ executablePath, args: ARGUMENTS })
  t.teardown(() => browser.close())
  return browser
}

export interface Watched {
  readonly page: Page
  readonly context: BrowserContext
  /** Console errors, uncaught errors and broken rules of the content security policy, but for refusals that a test provokes. */
  readonly complaints: string[]
}

/** Refusals by the API are the console's daily bread; the browser logs each. */
const EXPECTED = /^Failed to load resource: the server responded with a status of (400|401|403) /

export async function openPage(browser: Browser, viewport = { width: 1280, height: 800 }): Promise<Watched> {
  const context = await browser.newContext({ viewport, acceptDownloads: true })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`))
  page.on('console', (message) => {
    const worse = message.type() === 'error' || message.type() === 'warning'
    if (worse && !EXPECTED.test(message.text())) complaints.push(`${message.type()}: ${message.text()}`)
  })
  // The loader of the tests marks functions with this helper, which the page does not have.
  await context.addInitScript({ content: 'globalThis.__name = (it) => it' })
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) =>
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`),
    )
  })
  return { page, context, complaints }
}

export interface PictureFacts {
  readonly width: number
  readonly height: number
  /** 0 to 255, over the whole picture. */
  readonly luminance: number
  /** The test picture's frame number out of its barcode (see "Test picture" in app/media/PROTOCOL.md); null where there is none. */
  readonly frame: number | null
}

/** What is to be seen in the live picture now. */
export function livePicture(page: Page): Promise<PictureFacts> {
  return page.locator('.live img').evaluate(async (image: HTMLImageElement) => {
    await image.decode().catch(() => undefined)
    const { naturalWidth: width, naturalHeight: height } = image
    const context = new OffscreenCanvas(width, height).getContext('2d')
    if (!context || width === 0) return { width, height, luminance: 0, frame: null }
    context.drawImage(image, 0, 0)
    const { data } = context.getImageData(0, 0, width, height)
    const luma = (offset: number) =>
      0.299 * (data[offset] ?? 0) + 0.587 * (data[offset + 1] ?? 0) + 0.114 * (data[offset + 2] ?? 0)
    let sum = 0
    for (let offset = 0; offset < data.length; offset += 4) sum += luma(offset)

    const cell = Math.max(8, Math.floor(width / 40 / 2) * 2)
    const level = (index: number) => luma(4 * (Math.floor(cell * 1.5) * width + cell + index * cell + cell / 2))
    const white = level(0)
    const black = level(1)
    let frame = 0
    for (let bit = 2; bit < 34; bit++) frame = frame * 2 + (level(bit) > (white + black) / 2 ? 1 : 0)
    return { width, height, luminance: sum / (width * height), frame: white - black < 60 ? null : frame }
  })
}

/** Pixels by which the page is wider than the window. */
export function sideways(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
}

export async function signIn(page: Page, base: string, username: string, password: string): Promise<void> {
  await page.goto(base)
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}
