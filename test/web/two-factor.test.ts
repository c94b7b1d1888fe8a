import { TOTP } from 'otpauth'
import t from 'tap'
import { login } from '../support/api.ts'
import { ADMIN_PASSWORD, startServer } from '../support/server.ts'
import { openPage, startBrowser } from './browser.ts'

t.test('an account with a second factor is asked for its code', async (t) => {
  const server = await startServer(t)
  const api = await login(server)
  const { body } = await api.post('/api/auth/totp')
  const totp = new TOTP({ secret: String(body.secret) })
  const { body: enabled } = await api.post('/api/auth/totp/verify', { otp: totp.generate() })
  const recoveryCode = String(enabled.recovery_codes?.[0])

  const { page } = await openPage(await startBrowser(t))
  await page.goto(server.base)
  await page.getByLabel('Username').fill('admin')
  await page.getByLabel('Password').fill(ADMIN_PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  const code = page.getByLabel(/authenticator/)
  await code.fill('000000')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').filter({ hasText: /\w/ }).waitFor()
  t.equal(await code.count(), 0, 'a wrong code begins anew')
  await page.getByLabel('Password').fill(ADMIN_PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await code.fill(recoveryCode)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.locator('.live.live').waitFor()
})
