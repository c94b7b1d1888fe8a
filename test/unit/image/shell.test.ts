/** The shell of the image's tests, with a real shell behind the socket instead of a machine. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { credential, framed, Shell, unframed } from '../../image/support/shell.ts'
import { scratchFolder } from '../../support/scratch.ts'

/** Each connection gets a shell of its own, as after a restart of the machine. */
async function shellFor(t: Test): Promise<{ shell: Shell; socketPath: string }> {
  const folder = scratchFolder(t, 'shell-test')
  const socketPath = join(folder, 'sock')
  const server = createServer((socket) => {
    const child = spawn('/bin/sh', [], { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
    socket.pipe(child.stdin)
    child.stdout.pipe(socket)
    socket.on('error', () => undefined).on('close', () => process.kill(-(child.pid ?? 0), 'SIGKILL'))
    child.stdin.on('error', () => undefined)
  })
  await once(server.listen(socketPath), 'listening')
  const shell = new Shell(socketPath)
  t.teardown(async () => {
    shell.close()
    await once(server.close(), 'close')
  })
  return { shell, socketPath }
}

t.test('output and status come back, whatever the command prints', async (t) => {
  const { shell } = await shellFor(t)
  t.same(await shell.run('echo one; echo two'), { status: 0, output: 'one\ntwo' })
  t.same(await shell.run('printf "no line break"; exit 7'), { status: 7, output: 'no line break' })
  t.same(await shell.run('true'), { status: 0, output: '' })
  t.same(await shell.run('echo wrong >&2; false'), { status: 1, output: 'wrong' })
  t.same(await shell.run(`printf '%s' "it's \\$HOME" | sed 's/x/"y"/'`), { status: 0, output: "it's $HOME" })
  t.same(await shell.run('cat; echo "nothing to read"'), { status: 0, output: 'nothing to read' })
  t.same(await shell.run('set -e; false; echo not reached'), { status: 1, output: '' })
  t.equal((await shell.run('seq 1 50000')).output.split('\n').length, 50_000)
})

t.test('commands asked for at once run one after the other', async (t) => {
  const { shell } = await shellFor(t)
  const answers = await Promise.all([1, 2, 3].map((n) => shell.run(`echo ${n}`)))
  t.same(
    answers.map(({ output }) => output),
    ['1', '2', '3'],
  )
})

t.test('a command that takes too long fails, and the next one runs in a shell of its own', async (t) => {
  const { shell } = await shellFor(t)
  await t.rejects(shell.run('echo begun; sleep 30; echo late', 500), /did not finish/)
  t.same(await shell.run('echo next'), { status: 0, output: 'next' })
})

t.test('nobody there: it waits for as long as it was told', async (t) => {
  await t.rejects(new Shell('/nonexistent/socket').run('true', 300), /did not finish/)
})

t.test('an answer is one only when its last line is whole', async (t) => {
  t.equal(unframed('text\n\nmark 1', 'mark'), undefined)
  t.equal(unframed('text that names the mark 0', 'mark'), undefined)
  t.same(unframed('text\n\nmark 12\n', 'mark'), { status: 12, output: 'text' })
  t.match(framed('true', 'mark'), /^\/bin\/sh -c /)
})

t.test('a credential is one string without blanks or commas', async (t) => {
  const text = credential('systemd.extra-unit.x.service', '[Service]\nExecStart=a, b\n')
  t.match(text, /^io\.systemd\.credential\.binary:systemd\.extra-unit\.x\.service=[A-Za-z0-9+/=]+$/)
})
