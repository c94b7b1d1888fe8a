/** The console as its first user meets it, in a real browser against the built server. */
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import t from 'tap'
import { until } from '../support/api.ts'
import { ADMIN_PASSWORD, startServer } from '../support/server.ts'
import { livePicture, openPage, sideways, signIn, startBrowser } from './browser.ts'

const PHONE = { width: 390, height: 844 }

t.test('the first minute of a new user', async (t) => {
  const server = await startServer(t, { factory: true })
  const { base } = server
  const { page, context, complaints } = await openPage(await startBrowser(t))
  const button = (name: string | RegExp) => page.getByRole('button', { name })
  const list = page.locator('li.row')

  await t.test('the browser is not made to open its own password dialog', async (t) => {
    const byScript = await fetch(`${base}/api/status`, { headers: { 'X-Requested-With': 'XMLHttpRequest' } })
    t.equal(byScript.status, 401)
    t.equal(byScript.headers.get('WWW-Authenticate'), null, 'a Basic challenge would hang the console in that dialog')
  })

  await t.test('a wrong password is refused in words', async (t) => {
    await signIn(page, base, 'admin', 'wrong')
    await page.getByRole('alert').getByText('The username or the password is wrong').waitFor()
    t.equal(await page.getByLabel('Password').inputValue(), '', 'it is asked for again')
    t.equal(await page.evaluate(() => document.activeElement?.id), 'password')
  })

  await t.test('the factory password must be changed', async (t) => {
    await signIn(page, base, 'admin', 'admin')
    await page.getByRole('heading', { name: 'Choose a new password' }).waitFor()
    await choosePassword(page, 'short-1', 'short-1')
    await page.getByRole('alert').getByText('The password must have at least 8 characters').waitFor()
    await choosePassword(page, 'lower-case-1', 'lower-case-1')
    await page.getByRole('alert').getByText('must contain an upper case letter').waitFor()
    await choosePassword(page, ADMIN_PASSWORD, `${ADMIN_PASSWORD}x`)
    await page.getByRole('alert').getByText('are not the same').waitFor()

    await page.reload()
    await page.getByRole('heading', { name: 'Choose a new password' }).waitFor()
    await page.getByLabel('Current password').fill('admin')
    await choosePassword(page, ADMIN_PASSWORD, ADMIN_PASSWORD)
    await page.locator('.live.live').waitFor()
    t.pass('the main page is there, with a picture')
  })

  await t.test('no credential is within the reach of scripts', async (t) => {
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]),
    )
    const [cookie] = await context.cookies()
    t.ok(cookie?.httpOnly)
    t.equal(cookie?.sameSite, 'Strict')
    t.notOk(kept.includes(cookie?.value ?? ' '), kept)
    t.notOk(kept.includes(ADMIN_PASSWORD))
  })

  await t.test('a reload keeps the session', async () => {
    await page.reload()
    await page.locator('.live.live').waitFor()
    await page.getByText('Embedded test source').waitFor()
    await page.getByText(`rtsp://127.0.0.1:${server.ports.rtsp}/stream1`).waitFor()
    await page.getByText(`rtsp://127.0.0.1:${server.ports.rtsp}/stream2`).waitFor()
  })

  await t.test('the live picture lives', async (t) => {
    const first = await livePicture(page)
    t.match(first, { width: 1280, height: 720, frame: Number })
    const began = performance.now()
    const frames = new Set<number>()
    await until(
      async () => frames.add((await livePicture(page)).frame ?? 0).size,
      (size) => size >= 10,
      'ten different pictures',
    )
    const seconds = (performance.now() - began) / 1000
    t.ok(Math.max(...frames) > (first.frame ?? 0), 'numbers go up')
    t.ok(seconds < 6, `10 pictures in ${seconds.toFixed(1)} s`)
    t.ok(seconds > 1, `not more than about five a second: 10 pictures in ${seconds.toFixed(1)} s`)
  })

  await t.test('brightness acts on the picture', async (t) => {
    const before = await livePicture(page)
    await page.getByLabel('Brightness').fill('80')
    await until(
      () => livePicture(page),
      ({ luminance }) => luminance > before.luminance + 20,
      'a brighter picture',
    )
    t.equal(await page.locator('.slider output').first().textContent(), '80')
    await button('Reset').click()
    const after = await until(
      () => livePicture(page),
      ({ luminance }) => Math.abs(luminance - before.luminance) < 5,
      'the picture as it was',
    )
    t.ok(after)
    await until(
      () => page.getByLabel('Brightness').inputValue(),
      (value) => value === '50',
      'the slider follows the device',
    )
  })

  await t.test('another page follows what happens here', async (t) => {
    const other = await context.newPage()
    await other.goto(base)
    await other.locator('.live.live').waitFor()
    await other.getByRole('button', { name: 'Start recording' }).waitFor()
    await page.getByLabel('Contrast').fill('61')
    await until(
      () => other.getByLabel('Contrast').inputValue(),
      (value) => value === '61',
      'the other slider',
    )
    await button('Reset').click()
    await until(
      () => other.getByLabel('Contrast').inputValue(),
      (value) => value === '50',
      'the other slider, back',
    )
    t.pass()
    await other.close()
  })

  await t.test('a recording is made', async (t) => {
    await page.getByText('No recordings yet').waitFor()
    await button('Start recording').click()
    await button('Stop recording').waitFor()
    t.match(await page.locator('.filename').textContent(), /^recording_\d{8}_\d{6}\.mp4$/)
    await until(
      () => page.locator('.elapsed').textContent(),
      (text) => text === '0:03',
      'three seconds on the clock',
    )
    t.ok(await page.getByLabel('Resolution').isDisabled(), 'the mode is fixed meanwhile')
    t.equal(await list.first().getAttribute('data-state'), 'recording')
    await button('Pause').click()
    await page.getByText('Paused', { exact: true }).waitFor()
    t.ok(await button('Stop recording').isDisabled(), 'a paused recording goes on before it is stopped')
    await button('Go on').click()
    await button('Pause').waitFor()
    await button('Stop recording').click()
    await page.locator('li.row[data-state=ready]').waitFor()
    await page.getByText(/^Recording saved: recording_/).waitFor()
    t.match(await list.first().locator('.duration').textContent(), /^0:0[34]$/)
    t.match(await list.first().textContent(), '1280 × 720')
  })

  await t.test('it plays', async (t) => {
    await button(/^Play the recording of Today/).click()
    const video = page.locator('dialog video')
    await video.waitFor()
    const state = () =>
      video.evaluate((element: HTMLVideoElement) => ({
        time: element.currentTime,
        width: element.videoWidth,
        height: element.videoHeight,
        error: element.error?.message ?? '',
      }))
    const played = await until(state, ({ time, error }) => time > 1 || error !== '', 'a second of playing')
    t.match(played, { width: 1280, height: 720, error: '' })
    await video.evaluate((element: HTMLVideoElement) => {
      element.currentTime = 0.5
    })
    await until(state, ({ time }) => time >= 0.5 && time < 1, 'a jump back')
    await page.keyboard.press('Escape')
    await video.waitFor({ state: 'detached' })
    t.match(
      await page.evaluate(() => document.activeElement?.getAttribute('aria-label')),
      /^Play the recording/,
      'the focus is back',
    )
  })

  await t.test('it can be downloaded', async (t) => {
    const started = page.waitForEvent('download')
    await page.getByRole('link', { name: /^Download the recording/ }).click()
    const download = await started
    const bytes = await readFile(await download.path())
    const id = await list.first().getAttribute('data-recording')
    const stored = await context.request.get(`${base}/api/recordings/${id}`)
    t.match(download.suggestedFilename(), /^recording_.*\.mp4$/)
    t.ok(bytes.length > 10_000)
    t.ok(bytes.equals(await stored.body()), 'byte for byte')
    t.equal(bytes.toString('latin1', 4, 8), 'ftyp')
  })

  await t.test('a still is taken', async () => {
    await button('Take a still').click()
    await page.getByText(/^Still saved: snapshot_/).waitFor()
  })

  await t.test('it can be deleted, after a question', async (t) => {
    await button(/^Delete the recording/).click()
    await button('Keep').click()
    t.equal(await list.count(), 1)
    await button(/^Delete the recording/).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No recordings yet').waitFor()
    t.equal(await list.count(), 0)
  })

  await t.test('on a phone nothing sticks out', async (t) => {
    await page.setViewportSize(PHONE)
    t.equal(await sideways(page), 0, 'console')
    await page.getByRole('link', { name: 'Status' }).click()
    await page.getByRole('heading', { name: 'Load' }).waitFor()
    t.equal(await sideways(page), 0, 'status')
    await page.getByRole('link', { name: 'Console' }).click()
    await page.locator('.live.live').waitFor()
    await page.setViewportSize({ width: 1280, height: 800 })
  })

  await t.test('logging out ends the session', async (t) => {
    const [cookie] = await context.cookies()
    await button('Log out').click()
    await page.getByText('You are signed out.').waitFor()
    await until(
      async () => (await fetch(`${base}/api/status`, { headers: { cookie: `camera_session=${cookie?.value}` } })).status,
      (status) => status === 401,
      'the old cookie is refused',
    )
    t.equal((await context.request.get(`${base}/api/status`)).status(), 401)
    t.equal((await context.request.get(`${base}/api/recordings`)).status(), 401)
  })

  t.same(complaints, [], 'the browser had nothing to complain about')
  t.equal((await server.stop()).code, 0)
})

async function choosePassword(page: Page, password: string, repeated: string): Promise<void> {
  await page.getByLabel('New password', { exact: true }).fill(password)
  await page.getByLabel('Repeat the new password').fill(repeated)
  await page.getByRole('button', { name: 'Change password' }).click()
}
