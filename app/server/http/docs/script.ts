/** The script of the page at `/api/docs`, as text: it runs in the browser, as it is. Every text goes in as text, never as markup. */
export const SCRIPT = String.raw`const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const main = document.getElementById('operations')
const search = document.getElementById('search')
const versioned = document.getElementById('versioned')

function element(tag, options = {}, ...children) {
  const node = Object.assign(document.createElement(tag), options)
  node.append(...children.filter((child) => child !== null))
  return node
}

function typeName(schema) {
  if (schema.$ref) return schema.$ref.split('/').pop()
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.anyOf) return schema.anyOf.map(typeName).join(' | ')
  const bounds = [
    schema.minimum !== undefined ? '≥ ' + schema.minimum : '',
    schema.maximum !== undefined ? '≤ ' + schema.maximum : '',
    schema.default !== undefined ? 'default ' + JSON.stringify(schema.default) : '',
  ].filter(Boolean)
  return [schema.type ?? 'any', ...bounds].join(', ')
}

/** A value of the schema, for the examples. */
function sample(schema) {
  if (schema.example !== undefined) return schema.example
  if (schema.default !== undefined) return schema.default
  if (schema.enum) return schema.enum[0]
  if (schema.anyOf) return sample(schema.anyOf[0])
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map(sample))
  if (schema.type === 'object') {
    return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([key, value]) => [key, sample(value)]))
  }
  if (schema.type === 'array') return [sample(schema.items ?? {})]
  if (schema.type === 'integer' || schema.type === 'number') return schema.minimum ?? 0
  if (schema.type === 'boolean') return true
  return 'string'
}

function parameters(list) {
  if (list.length === 0) return null
  const rows = list.map((item) =>
    element('tr', {}, ...[item.name + (item.required ? ' *' : ''), item.in, typeName(item.schema), item.description ?? ''].map((text) =>
      element('td', { textContent: text }))))
  const head = ['Parameter', 'In', 'Type', ''].map((text) => element('th', { textContent: text }))
  return element('table', {}, element('tr', {}, ...head), ...rows)
}

function block(title, schema) {
  return element('div', {}, element('h3', { textContent: title }), element('pre', { textContent: JSON.stringify(schema, null, 2) }))
}

function curl(operation) {
  const query = operation.parameters.filter((item) => item.in === 'query' && item.required)
  const path = operation.path.replace(/\{([^}]*)\}/g, (_, name) => '<' + name + '>')
  const url = location.origin + path + (query.length ? '?' + query.map((item) => item.name + '=' + sample(item.schema)).join('&') : '')
  const parts = ['curl']
  if (operation.method !== 'get') parts.push('-X', operation.method.toUpperCase())
  if (operation.role !== 'public') parts.push("-H 'Authorization: Bearer <token>'")
  if (operation.input) parts.push("-H 'Content-Type: application/json'", "-d '" + JSON.stringify(sample(operation.input)) + "'")
  return parts.join(' ') + " '" + url + "'"
}

function body(operation) {
  const failures = Object.entries(operation.responses).filter(([status]) => status !== '200')
  const [[type, content] = ['', {}]] = Object.entries(operation.responses['200'].content ?? {})
  return element('div', { className: 'body' },
    operation.description ? element('p', { textContent: operation.description }) : null,
    parameters(operation.parameters),
    operation.input ? block('Body', operation.input) : null,
    block('Answer: ' + type, content.schema ?? {}),
    element('h3', { textContent: 'Errors' }),
    element('table', {}, ...failures.map(([status, { description }]) =>
      element('tr', {}, element('td', { textContent: status }), element('td', { textContent: description })))),
    element('h3', { textContent: 'Example' }),
    element('pre', { textContent: curl(operation) }))
}

function entry(operation) {
  const details = element('details', {}, element('summary', {},
    element('span', { className: 'method', textContent: operation.method.toUpperCase() }),
    element('span', { className: 'path', textContent: operation.path }),
    element('span', { className: 'what', textContent: operation.summary }),
    element('span', { className: 'role', textContent: operation.role })))
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) details.append(body(operation))
  })
  return details
}

function show(operations) {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  const found = operations.filter((operation) =>
    (versioned.checked || !operation.alias) && words.every((word) => operation.text.includes(word)))
  const tags = [...new Set(found.map((operation) => operation.tag))]
  main.replaceChildren(...tags.flatMap((tag) => [
    element('h2', { textContent: tag }),
    ...found.filter((operation) => operation.tag === tag).map(entry),
  ]))
  if (found.length === 0) main.replaceChildren(element('p', { textContent: 'No operation matches.' }))
}

function list(api) {
  const operations = []
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of METHODS) {
      const operation = item[method]
      if (!operation) continue
      const role = operation['x-role']
      const tag = operation.tags[0]
      operations.push({
        ...operation, path, method, role, tag,
        alias: path.startsWith('/api/v1/') && api.paths['/api/' + path.slice(8)]?.[method] !== undefined,
        input: operation.requestBody?.content['application/json']?.schema,
        text: [method, path, operation.summary, tag, role].join(' ').toLowerCase(),
      })
    }
  }
  return operations
}

async function load() {
  const response = await fetch('/api/openapi.json')
  if (response.status === 401) throw new Error('Log in to the console first; then reload this page.')
  if (!response.ok) throw new Error('The description cannot be read (' + response.status + ').')
  const api = await response.json()
  document.getElementById('version').textContent = api.info.version
  const operations = list(api)
  search.addEventListener('input', () => show(operations))
  versioned.addEventListener('change', () => show(operations))
  show(operations)
}

load().catch((error) => main.replaceChildren(element('p', { textContent: error.message })))
`
