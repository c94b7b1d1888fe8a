/** The rule for every address that updates come from. Pure. */

/** Absolute, of HTTP or HTTPS and without a password; else null. */
export function httpUrl(url: string, base?: string): string | null {
  if (!URL.canParse(url, base)) return null
  const parsed = new URL(url, base)
  return ['http:', 'https:'].includes(parsed.protocol) && parsed.username === '' && parsed.password === '' ? parsed.href : null
}
