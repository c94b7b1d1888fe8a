/** The console when something is otherwise: another role, many recordings, a busy server, no server, no camera; and the status dashboard. */
import type { Page } from 'playwright-core'
import t from 'tap'
import { until } from '../support/api.ts'
import { ADMIN_PASSWORD, startServer } from '../support/server.ts'
import { openPage, sideways, signIn, startBrowser } from './browser.ts'
import { layWire } from './wire.ts'

t.test('the status dashboard', async (t) => {
  const server = await startServer(t)
  const { page, complaints } = await openPage(await startBrowser(t))
  const dashboard = `http://127.0.0.1:${server.ports.dashboard}`
  await signIn(page, dashboard, 'admin', ADMIN_PASSWORD)
  await page.getByRole('heading', { name: 'Health' }).waitFor()
  t.match(page.url(), /\/monitoring$/)
  await page.getByText('test:1280x720@30').waitFor()
  await page.getByRole('cell', { name: '/stream1' }).waitFor()
  const uptime = () => fact(page, 'Up for')
  const first = await uptime()
  await until(uptime, (text) => text !== first, 'fresh numbers')
  t.equal(await sideways(page), 0)
  await page.getByRole('link', { name: 'Console' }).click()
  await page.locator('.live.live').waitFor()
  t.pass('the console is a click away')
  t.same(complaints, [])
})

t.test('a lost connection is said so, and found again', async (t) => {
  const server = await startServer(t)
  const wire = await layWire(t, server.ports.http)
  const { page } = await openPage(await startBrowser(t))
  const record = page.getByRole('button', { name: 'Start recording' })
  await signIn(page, wire.base, 'admin', ADMIN_PASSWORD)
  await page.locator('.live.live').waitFor()
  await until(
    () => record.isEnabled(),
    (enabled) => enabled,
    'the socket',
  )
  wire.cut()
  await page.getByText('No connection').waitFor()
  t.ok(await record.isDisabled())
  wire.mend()
  await page.locator('.live.live').waitFor()
  await until(
    () => record.isEnabled(),
    (enabled) => enabled,
    'the socket is back',
  )
})

t.test('without a camera the page says so', async (t) => {
  const server = await startServer(t, { args: ['--camera', 'v4l2:/dev/video-none'] })
  const { page } = await openPage(await startBrowser(t))
  await signIn(page, server.base, 'admin', ADMIN_PASSWORD)
  await page.locator('.live').getByText('No signal').waitFor()
  t.ok(await page.getByRole('button', { name: 'Start recording' }).isDisabled())
  t.notOk(await page.locator('.live img').isVisible())
})

t.test('the picture is asked for with restraint', async (t) => {
  const server = await startServer(t)
  const { page, context, complaints } = await openPage(await startBrowser(t))
  // Not a function: the page's own script is to meet these from its first line on.
  await context.addInitScript({
    content: `
      globalThis.objectUrls = 0
      const { createObjectURL, revokeObjectURL } = URL
      URL.createObjectURL = (it) => { globalThis.objectUrls += 1; return createObjectURL.call(URL, it) }
      URL.revokeObjectURL = (url) => { if (url) globalThis.objectUrls -= 1; revokeObjectURL.call(URL, url) }
      let hidden = false
      Object.defineProperty(document, 'hidden', { get: () => hidden })
      globalThis.setHidden = (value) => { hidden = value; document.dispatchEvent(new Event('visibilitychange')) }`,
  })
  const asked: number[] = []
  page.on('request', (request) => {
    if (request.url().includes('/image')) asked.push(performance.now())
  })
  await signIn(page, server.base, 'admin', ADMIN_PASSWORD)
  await until(
    () => asked.length,
    (count) => count >= 15,
    '15 pictures',
  )
  const urls = await page.evaluate('objectUrls')
  t.ok(Number(urls) <= 2, `pictures are given back: ${urls} are held`)

  await t.test('a busy server is left alone as long as it asks', async (t) => {
    let refused = 0
    await page.route(
      '**/image?*',
      (route) => {
        refused = performance.now()
        return route.fulfill({
          status: 429,
          headers: { 'Retry-After': '2' },
          json: { error: { code: 'RATE_LIMITED', message: 'slow' } },
        })
      },
      { times: 1 },
    )
    const next = await until(
      () => asked.find((time) => refused > 0 && time > refused + 50) ?? 0,
      (time) => time > 0,
      'the next request',
    )
    t.ok(next - refused > 1900, `the next request came after ${Math.round(next - refused)} ms`)
    t.ok(await page.locator('.live img').isVisible(), 'the last picture stays')
  })

  await t.test('none are fetched for a hidden page', async (t) => {
    await page.evaluate('setHidden(true)')
    // One may have been on its way.
    await page.waitForRequest(/image/, { timeout: 300 }).catch(() => undefined)
    await t.rejects(page.waitForRequest(/image/, { timeout: 1500 }))
    await page.evaluate('setHidden(false)')
    await page.waitForRequest(/image/, { timeout: 1500 })
  })
  t.same(
    complaints.filter((text) => !text.includes('429')),
    [],
  )
})

t.test('who may not control is offered no controls', async (t) => {
  const server = await startServer(t)
  const browser = await startBrowser(t)
  // The rights are the server's affair and tested there; here the page is only told of another role.
  const pageOf = async (role: string) => {
    const { page } = await openPage(browser)
    await page.route('**/api/login', async (route) => {
      const answer = await route.fetch()
      const body = (await answer.json()) as Record<string, unknown>
      await route.fulfill({ response: answer, json: { ...body, user: { username: 'someone', role } } })
    })
    await signIn(page, server.base, 'admin', ADMIN_PASSWORD)
    await page.locator('.live.live').waitFor()
    return page
  }
  const viewer = await pageOf('viewer')
  await viewer.getByText('No recordings yet').waitFor()
  await viewer.getByText('/stream1').waitFor()
  for (const page of [viewer, await pageOf('guest')]) {
    t.equal(await page.getByRole('button', { name: /recording|still/i }).count(), 0)
    t.equal(await page.getByRole('slider').count(), 0)
  }
})

t.test('many recordings come in pages', async (t) => {
  const server = await startServer(t)
  const { page } = await openPage(await startBrowser(t))
  const all = Array.from({ length: 45 }, (_, index) => ({
    id: 45 - index,
    filename: `recording_${45 - index}.mp4`,
    timestampStartMs: 1_700_000_000_000 - index * 60_000,
    durationMs: 61_000,
    size: 1_234_567,
    resolution: '1920x1080',
    fps: 30,
    state: index === 0 ? 'defect' : 'ready',
  }))
  await page.route('**/api/recordings?*', (route) => {
    const query = new URL(route.request().url()).searchParams
    const [limit, offset] = [Number(query.get('limit')), Number(query.get('offset'))]
    return route.fulfill({ json: { recordings: all.slice(offset, offset + limit), total: all.length, limit, offset } })
  })
  await signIn(page, server.base, 'admin', ADMIN_PASSWORD)
  await page.getByText('1–20 of 45').waitFor()
  t.equal(await page.locator('li.row').count(), 20)
  t.match(await page.locator('li.row').first().textContent(), 'Defect')
  t.ok(await page.locator('li.row .play').first().isDisabled(), 'what is defect cannot be played')
  t.match(await page.locator('li.row').nth(1).textContent(), /1:01.*1\.23 MB.*1920 × 1080.*30 fps/)
  t.ok(await page.getByRole('button', { name: 'Newer' }).isDisabled())
  await page.getByRole('button', { name: 'Older' }).click()
  await page.getByRole('button', { name: 'Older' }).click()
  await page.getByText('41–45 of 45').waitFor()
  t.equal(await page.locator('li.row').count(), 5)
  t.ok(await page.getByRole('button', { name: 'Older' }).isDisabled())
  await page.setViewportSize({ width: 390, height: 844 })
  t.equal(await sideways(page), 0)
})

function fact(page: Page, name: string): Promise<string | null> {
  return page.locator('dt', { hasText: name }).locator('xpath=following-sibling::dd[1]').textContent()
}
