/**
 * Upload and download of 2 GiB over the loopback, against nginx with sendfile serving the same file in the same run. Prints throughput, CPU
 * seconds per GiB and the growth of our memory; ends with 1 beyond the limits.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { login } from '../support/api.ts'
import { usage } from '../support/process.ts'
import { startServer } from '../support/server.ts'

const GIB = 1024 ** 3
const SIZE = Number(process.env.BENCH_FILE_BYTES ?? 2 * GIB)
const ROUNDS = 3
const LEAST_RATIO = 0.8
const MOST_GROWTH = 20 * 1024 * 1024
const SAMPLE_MS = 10
const run = promisify(execFile)

const cleanups: (() => unknown)[] = []
// The test support wants somebody who cleans up at the end.
const owner = { teardown: (work: () => unknown) => cleanups.unshift(work) } as unknown as Test

interface Measured {
  readonly mbPerSecond: number
  readonly cpuPerGib: number
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

/** curl throws away what comes, so that it costs as little as it can. */
async function measure(pid: number, args: readonly string[]): Promise<Measured> {
  const cpu = usage(pid).cpuSeconds
  const began = performance.now()
  const { stdout } = await run('curl', [
    '-sS',
    '--fail',
    '-o',
    '/dev/null',
    '-w',
    '%{http_code} %{size_download} %{size_upload}',
    ...args,
  ])
  const seconds = (performance.now() - began) / 1000
  const [, down, up] = stdout.split(' ').map(Number)
  if (Math.max(down ?? 0, up ?? 0) < SIZE) throw new Error(`not all bytes went over: ${stdout}`)
  return { mbPerSecond: SIZE / 1e6 / seconds, cpuPerGib: ((usage(pid).cpuSeconds - cpu) / SIZE) * GIB }
}

function best(results: readonly Measured[]): Measured {
  return results.reduce((a, b) => (b.mbPerSecond > a.mbPerSecond ? b : a))
}

async function makeFile(path: string): Promise<void> {
  const file = await open(path, 'wx')
  const chunk = Buffer.alloc(4 * 1024 * 1024, 'camera')
  for (let left = SIZE; left > 0; left -= chunk.length) await file.write(chunk, 0, Math.min(left, chunk.length))
  await file.close()
}

async function startNginx(folder: string, files: string, port: number): Promise<ChildProcess> {
  const config = join(folder, 'nginx.conf')
  writeFileSync(
    config,
    `daemon off; master_process off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
events { worker_connections 64; }
http {
  access_log off; sendfile on; tcp_nopush on; client_max_body_size 0; client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f; scgi_temp_path ${folder}/s; uwsgi_temp_path ${folder}/u;
  server { listen 127.0.0.1:${port}; root ${files}; location / { dav_methods PUT; } }
}
`,
  )
  const child = spawn('/usr/sbin/nginx', ['-p', folder, '-c', config], { stdio: 'inherit' })
  for (const deadline = performance.now() + 5000; performance.now() < deadline; await delay(20)) {
    const socket = connect(port, '127.0.0.1')
    const reached = await Promise.race([once(socket, 'connect').then(() => true), once(socket, 'error').then(() => false)]).catch(
      () => false,
    )
    socket.destroy()
    if (reached) return child
  }
  child.kill()
  throw new Error('nginx does not answer')
}

async function main(): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-files-'))
  owner.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const source = join(folder, 'source')
  await makeFile(source)
  mkdirSync(join(folder, 'dav'))
  const server = await startServer(owner, { args: ['--rate-limits', 'off'] })
  const { token } = await login(server)
  const authorization = ['-H', `Authorization: Bearer ${token}`]
  const nginxPort = server.ports.http + 1000 > 65_000 ? server.ports.http - 1000 : server.ports.http + 1000
  const media = join(server.dataDir, 'media')
  const nginx = await startNginx(folder, folder, nginxPort)
  owner.teardown(async () => {
    nginx.kill()
    if (nginx.exitCode === null) await once(nginx, 'exit')
  })
  const nginxPid = nginx.pid ?? 0
  const rows: [string, Measured, Measured][] = []
  const before = residentBytes(server.pid)
  let most = before
  const sampler = setInterval(() => {
    most = Math.max(most, residentBytes(server.pid))
  }, SAMPLE_MS)

  const ups: Measured[] = []
  const davs: Measured[] = []
  for (let round = 0; round < 2; round++) {
    davs.push(await measure(nginxPid, ['-T', source, `http://127.0.0.1:${nginxPort}/dav/copy`]))
    await rm(join(folder, 'dav/copy'))
    ups.push(
      await measure(server.pid, [
        ...authorization,
        '-H',
        'Expect:',
        '-F',
        `file=@${source};filename=copy`,
        '-F',
        'overwrite=true',
        `${server.base}/upload`,
      ]),
    )
  }
  rows.push(['upload (nginx: PUT, without fsync)', best(ups), best(davs)])
  const stored = join(media, 'copy')
  if (statSync(stored).size !== SIZE) throw new Error('the upload is not whole')

  const ours: Measured[] = []
  const theirs: Measured[] = []
  for (let round = 0; round < ROUNDS; round++) {
    theirs.push(await measure(nginxPid, [`http://127.0.0.1:${nginxPort}/source`]))
    ours.push(await measure(server.pid, [...authorization, `${server.base}/download/copy`]))
  }
  clearInterval(sampler)
  rows.push(['download', best(ours), best(theirs)])

  console.log(`${(SIZE / GIB).toFixed(2)} GiB over the loopback; the best of ${ROUNDS} rounds`)
  for (const [name, own, other] of rows) {
    console.log(
      `${name}: ${own.mbPerSecond.toFixed(0)} MB/s, nginx ${other.mbPerSecond.toFixed(0)} MB/s, ratio ${(own.mbPerSecond / other.mbPerSecond).toFixed(2)}; ` +
        `CPU ${own.cpuPerGib.toFixed(2)} s/GiB, nginx ${other.cpuPerGib.toFixed(2)} s/GiB`,
    )
  }
  const growth = most - before
  console.log(`memory of the server: ${(before / 1e6).toFixed(0)} MB, grown by at most ${(growth / 1e6).toFixed(1)} MB`)
  const ratio = best(ours).mbPerSecond / best(theirs).mbPerSecond
  const good = ratio >= LEAST_RATIO && growth < MOST_GROWTH
  console.log(
    `${good ? 'within' : 'BEYOND'} the limits: download at least ${LEAST_RATIO} of nginx, memory less than ${MOST_GROWTH / 1e6} MB more`,
  )
  return good
}

let good = false
try {
  good = await main()
} finally {
  for (const work of cleanups) await work()
}
process.exit(good ? 0 : 1)
