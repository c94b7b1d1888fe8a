/** The server's password rules, shown while one types; the server has the last word. */
export interface Rule {
  readonly text: string
  readonly kept: (password: string) => boolean
}

export const PASSWORD_RULES: readonly Rule[] = [
  { text: 'at least 8 characters', kept: (password) => password.length >= 8 },
  { text: 'an upper case letter', kept: (password) => /\p{Lu}/u.test(password) },
  { text: 'a lower case letter', kept: (password) => /\p{Ll}/u.test(password) },
  { text: 'a digit', kept: (password) => /\p{Nd}/u.test(password) },
  { text: 'a special character, such as ! or -', kept: (password) => /[^\p{L}\p{Nd}\s]/u.test(password) },
]
