/** Files on the device storage: upload, listing, download, delete. */
import { Type } from '@sinclair/typebox'
import { InvalidRequest } from '../errors.ts'
import { type Files, MAX_ENTRIES, type Upload } from '../files/index.ts'
import { FileReply, type FormBody, type HandlerInput, type Route, route } from '../http/index.ts'
import { required } from './access.ts'
import { closed, Enum, Page, Success } from './schemas.ts'

const PathText = Type.String({ maxLength: 4096, description: 'relative to the storage, or beginning with /media/data' })
const FilePath = Type.Object({ filepath: PathText })

const Entry = Type.Object({
  name: Type.String({ description: 'relative to the folder that was asked for' }),
  type: Enum(['file', 'directory']),
  size: Type.Optional(Type.Integer({ description: 'bytes; files only' })),
  modified: Type.String({ format: 'date-time' }),
  mime_type: Type.Optional(Type.String({ description: 'files only' })),
  path: Type.String({ description: 'on the device storage' }),
})
const Listing = Type.Object({
  path: Type.String(),
  files: Type.Array(Entry),
  total_size: Type.Integer({ description: 'bytes of all files that match, not only of this page' }),
  file_count: Type.Integer(),
  directory_count: Type.Integer(),
  total: Type.Integer({ description: 'entries that match' }),
  limit: Type.Integer(),
  offset: Type.Integer(),
  truncated: Type.Boolean({
    description: `there are more than ${MAX_ENTRIES} entries: counts and sums are of those that were looked at`,
  }),
})
const listQuery = {
  recursive: Type.Optional(Type.Boolean({ description: 'with all that lies below' })),
  filter: Type.Optional(Type.String({ maxLength: 33, description: 'only files with this extension', examples: ['.avi'] })),
  ...Page,
}
const UploadForm = Type.Object({
  file: Type.String({ format: 'binary' }),
  path: Type.Optional(Type.String({ description: 'the folder, made where it is missing; the storage itself when absent' })),
  overwrite: Type.Optional(Type.Boolean({ default: false, description: 'replace a file of the same name' })),
})

/** Nothing that runs as a program in a browser, or could. */
const INLINE = /^(image\/(png|jpeg|gif|webp|bmp)|video\/|audio\/|text\/plain$)/

type ListInput = { recursive?: boolean; filter?: string; limit?: number; offset?: number }

export function filesRoutes(files: Files): Route[] {
  const shared = { rate: 'file', tag: 'Files' } as const
  const list = (
    input: Pick<HandlerInput<unknown, unknown, unknown>, 'caller' | 'signal'>,
    path: string,
    field: string,
    query: ListInput,
  ) => {
    const page = { limit: query.limit ?? 100, offset: query.offset ?? 0 }
    const asked = { recursive: query.recursive ?? false, ...(query.filter ? { filter: query.filter } : {}) }
    const listing = files.list(required(input.caller), path, field, { ...asked, ...page, signal: input.signal })
    return listing.then((found) => ({ ...found, ...page }))
  }
  return [
    route({
      ...shared,
      method: 'GET',
      path: '/files',
      access: 'viewer',
      summary: 'List a folder, sorted by name',
      description: 'Symbolic links and special files are left out, and so are recordings of cameras that the user may not see.',
      query: Type.Object({ path: Type.Optional(PathText), ...listQuery }, closed),
      response: Listing,
      errors: ['FILE_NOT_FOUND', 'SERVICE_UNAVAILABLE'],
      handler: (input) => list(input, input.query.path ?? '', 'query.path', input.query),
    }),
    route({
      ...shared,
      method: 'GET',
      path: '/api/files',
      access: 'viewer',
      summary: 'List a folder, sorted by name',
      description: 'As `GET /files`, with the folder in `directory`.',
      query: Type.Object({ directory: Type.Optional(PathText), ...listQuery }, closed),
      response: Listing,
      errors: ['FILE_NOT_FOUND', 'SERVICE_UNAVAILABLE'],
      handler: (input) => list(input, input.query.directory ?? '', 'query.directory', input.query),
    }),
    ...(['/files/{filepath+}', '/download/{filepath+}'] as const).map((path) =>
      route({
        ...shared,
        method: 'GET',
        path,
        access: 'viewer',
        summary: path.startsWith('/download')
          ? 'Download a file'
          : 'Read a file; pictures, video and plain text show in the browser',
        description: 'Range, ETag and If-Modified-Since are honoured.',
        params: FilePath,
        response: { binary: 'application/octet-stream', file: true },
        errors: ['FILE_NOT_FOUND', 'RECORDING_IN_PROGRESS', 'RANGE_NOT_SATISFIABLE'],
        handler: ({ params, caller }) => {
          const file = files.find(required(caller), params.filepath, 'params.filepath')
          const attachment = path.startsWith('/download') || !INLINE.test(file.mime)
          return new FileReply(file.open, file.mime, { filename: file.name, attachment })
        },
      }),
    ),
    route({
      ...shared,
      method: 'DELETE',
      path: '/files/{filepath+}',
      access: 'operator',
      summary: 'Delete a file, or a folder with all that it holds; recordings among them leave the catalogue',
      params: FilePath,
      query: Type.Object({ recursive: Type.Optional(Type.Boolean({ description: 'must be true for a folder' })) }, closed),
      response: Success,
      errors: ['FILE_NOT_FOUND', 'RECORDING_IN_PROGRESS', 'CONFLICT'],
      handler: async ({ params, query, caller, signal }) => {
        await files.remove(required(caller), params.filepath, 'params.filepath', query.recursive === true, signal)
        return { success: true }
      },
    }),
    route({
      method: 'POST',
      path: '/upload',
      access: 'operator',
      rate: 'upload',
      tag: 'Files',
      summary: 'Upload a file',
      description:
        'The parts may come in any order. The file is there whole or not at all. Its size is limited by `max_upload_bytes` and `quota_bytes` of the storage configuration.',
      upload: { form: UploadForm, maxBytes: () => files.limits().maxUploadBytes },
      response: Type.Object({ success: Type.Boolean(), filename: Type.String(), path: Type.String(), size: Type.Integer() }),
      errors: ['CONFLICT', 'RECORDING_IN_PROGRESS', 'INSUFFICIENT_STORAGE', 'SERVICE_UNAVAILABLE'],
      handler: async ({ body }) => ({ success: true, ...(await receive(files, body)) }),
    }),
  ]
}

async function receive(files: Files, form: FormBody): Promise<{ filename: string; path: string; size: number }> {
  const fields = new Map<string, string>()
  let upload: Upload | undefined
  let filename = ''
  try {
    for await (const event of form.events()) {
      if (event.kind === 'data') await upload?.write(event.bytes)
      else if (event.kind === 'field') setField(fields, event.name, event.value)
      else {
        if (event.name !== 'file') throw new InvalidRequest(`body.${event.name}`, 'The file must come in the part named file')
        filename = event.filename
        files.checkFilename(filename)
        upload = await files.receive(form.announced)
      }
    }
    if (!upload) throw new InvalidRequest('body.file', 'The form has no file')
    const folder = fields.get('path') ?? ''
    return await files.publish(upload, { folder, filename, overwrite: fields.get('overwrite') === 'true' })
  } finally {
    await upload?.end()
  }
}

function setField(fields: Map<string, string>, name: string, value: string): void {
  if (name === 'file') throw new InvalidRequest('body.file', 'The part has no file name')
  if (name !== 'path' && name !== 'overwrite') throw new InvalidRequest(`body.${name}`, 'This key is not known')
  if (fields.has(name)) throw new InvalidRequest(`body.${name}`, `${name} was given more than once`)
  if (name === 'overwrite' && value !== 'true' && value !== 'false') {
    throw new InvalidRequest('body.overwrite', 'Expected one of true, false')
  }
  fields.set(name, value)
}
