/** `Content-Disposition` with a name of any letters (RFC 6266): a plain one for old clients, and the exact one. */
export function disposition(attachment: boolean, filename: string | undefined): string {
  const kind = attachment ? 'attachment' : 'inline'
  if (filename === undefined) return kind
  const plain = filename.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  if (plain === filename) return `${kind}; filename="${plain}"`
  // Half of a surrogate pair cannot be encoded.
  const exact = encodeURIComponent(filename.replace(/\p{Surrogate}/gu, '_')).replace(/['()*]/g, escapeLetter)
  return `${kind}; filename="${plain}"; filename*=UTF-8''${exact}`
}

function escapeLetter(letter: string): string {
  return `%${letter.charCodeAt(0).toString(16).toUpperCase()}`
}
