/** Dates of HTTP (RFC 9110, 5.6.7). */

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const TIME = '(?<time>\\d\\d:\\d\\d:\\d\\d)'
const MONTH = `(?<month>${MONTHS.join('|')})`
const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)'
const LONG_DAY = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day'
const FORMS = [
  new RegExp(`^${DAY}, (?<day>\\d\\d) ${MONTH} (?<year>\\d{4}) ${TIME} GMT$`),
  new RegExp(`^${LONG_DAY}, (?<day>\\d\\d)-${MONTH}-(?<year>\\d\\d) ${TIME} GMT$`),
  new RegExp(`^${DAY} ${MONTH} (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})$`),
]
/** The last second that has four digits for its year. */
const LAST = Date.UTC(9999, 11, 31, 23, 59, 59)

/** Epoch ms; null for what is none of the three forms. */
export function parseHttpDate(text: string, now = Date.now()): number | null {
  for (const form of FORMS) {
    const { day = '', month = '', year = '', time = '' } = form.exec(text)?.groups ?? {}
    if (day === '') continue
    const [hour = 0, minute = 0, second = 0] = time.split(':').map(Number)
    const date = new Date(0)
    date.setUTCFullYear(fullYear(year, now), MONTHS.indexOf(month), Number(day))
    // The 31st of June would be another day; 60 is a leap second.
    if (date.getUTCDate() !== Number(day) || hour > 23 || minute > 59 || second > 60) return null
    return date.setUTCHours(hour, minute, second)
  }
  return null
}

/** Two digits that would lie more than 50 years ahead mean the past. */
function fullYear(text: string, now: number): number {
  if (text.length === 4) return Number(text)
  const present = new Date(now).getUTCFullYear()
  const year = present - (present % 100) + Number(text)
  return year > present + 50 ? year - 100 : year
}

/** File systems know times that no header can say. */
export function httpDate(epochMs: number): string {
  return new Date(Math.min(Math.max(epochMs, 0), LAST)).toUTCString()
}
