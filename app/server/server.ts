/** The composition root: builds the components in order, starts them, and stops them in reverse. */
import { join } from 'node:path'
import { apiRoutes } from './api/index.ts'
import { Appliance } from './appliance.ts'
import { AuditLog } from './audit/index.ts'
import { Auth, RTSP_REALM, RtspAccess } from './auth/index.ts'
import { Backups } from './backup/index.ts'
import { Bus } from './bus.ts'
import { Cameras, CameraTransfer } from './cameras/index.ts'
import type { Options } from './cli.ts'
import type { Component } from './component.ts'
import { Configuration } from './config/index.ts'
import { errorText } from './errors.ts'
import { DeviceStorage, Files } from './files/index.ts'
import { HttpServer, StaticAssets, type WebSocketBehaviour } from './http/index.ts'
import { Jobs } from './jobs/index.ts'
import { listenersOf, portsOf, type ReadyPorts, readyPorts } from './listeners.ts'
import { childLogger, type Logger } from './log.ts'
import { MediaSupervisor } from './media/index.ts'
import { NetworkSelfTest, NetworkTrials } from './network/index.ts'
import {
  answers,
  Clock,
  lockDataFolder,
  NetworkReader,
  Notify,
  outlive,
  prepareFolder,
  recordProcess,
  SystemAgent,
  SystemReader,
  soundOf,
} from './platform/index.ts'
import { PutBackAges, settlePutBack } from './put-back.ts'
import {
  backgroundRate,
  Catalogue,
  Categories,
  CategoryTransfer,
  Exports,
  Integrity,
  limitsOf,
  Places,
  Playback,
  PreRoll,
  Recorder,
  RecordingSchedule,
  Removal,
  Replication,
  Retention,
  Search,
  StorageCare,
  Tags,
  Thumbnails,
  TimeCorrection,
  TriggeredRecordings,
} from './recording/index.ts'
import { Snapshots } from './snapshots/index.ts'
import {
  recordingBufferSize,
  recordingDefaults,
  recordingQueueSize,
  SettingsTransfer,
  State,
  StateSocket,
} from './state/index.ts'
import { MIGRATIONS, Store } from './store/index.ts'
import { Certificates } from './tls/index.ts'
import { BUILD, VERSION } from './version.ts'
import { WEB_ASSETS } from './web-assets.ts'
import { adminPassword, defaultMode, givenSections, policyOf, RtspWiring, wireConfiguration } from './wiring.ts'

const OLD_HELPER_PATIENCE_MS = 4000
const CAMERA_PATIENCE_MS = 1500
/** Of the 5 seconds that SIGTERM leaves, most belong to the recordings. */
const HTTP_STOP_MS = 500

export class CameraServer {
  private readonly started: Component[] = []

  constructor(
    private readonly options: Options,
    private readonly log: Logger,
    /** Where the helper lies unless the options say otherwise. */
    private readonly programFolder: string,
  ) {}

  async start(): Promise<ReadyPorts> {
    try {
      return await this.startAll()
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  async stop(): Promise<void> {
    for (let part = this.started.pop(); part; part = this.started.pop()) {
      try {
        await part.stop()
      } catch (error) {
        this.log.error({ error: errorText(error) }, 'a component did not stop cleanly')
      }
    }
  }

  private async startAll(): Promise<ReadyPorts> {
    const { options, log } = this
    const data = (...parts: string[]) => join(options.dataDir, ...parts)
    prepareFolder(options.dataDir)
    const lock = data('server.pid')
    const helperPid = data('helper.pid')
    lockDataFolder(lock)
    this.started.push({ start: () => {}, stop: () => recordProcess(lock, null) })
    await outlive(helperPid, OLD_HELPER_PATIENCE_MS)

    const bus = new Bus()
    const clock = await this.begin(new Clock(bus, childLogger(log, 'clock'), { builtAt: Date.parse(BUILD) }))
    const tellFull = (full: boolean) => bus.publish('alert', full ? 'database_full' : 'database_writable', {})
    const store = await this.begin(new Store(data('db'), childLogger(log, 'store'), MIGRATIONS, data('db-backups'), tellFull))
    const audit = await this.begin(new AuditLog(store, bus, childLogger(log, 'audit')))
    const configuration = await this.begin(new Configuration(store, bus, childLogger(log, 'config'), givenSections(options)))
    const jobs = await this.begin(new Jobs(store, bus, childLogger(log, 'jobs')))
    const auth = await this.begin(
      new Auth(
        store,
        bus,
        {
          keyFolder: data('keys'),
          carryOver: { file: data('persistent', 'users-carry-over.json'), bootId: clock.bootId },
          adminPassword: adminPassword(options.adminPasswordFile),
          sessionLifetimeMs: () => configuration.get('security').session_timeout * 1000,
          trustedOrigins: () => configuration.get('security').cors_origins,
        },
        childLogger(log, 'auth'),
      ),
    )
    const certificates = await this.begin(new Certificates(data('tls'), bus, childLogger(log, 'tls')))
    const storage = new DeviceStorage(data('media'), options.mediaRoot)
    storage.start()
    const rtsp = new RtspWiring(configuration)
    const media = new MediaSupervisor(
      options.mediaHelper ?? join(this.programFolder, 'camera-media'),
      {
        address: options.bind,
        ports: options.rtspPorts,
        realm: RTSP_REALM,
        access: () => rtsp.settings,
        certificate: () => certificates.files,
      },
      childLogger(log, 'media'),
      (pid) => recordProcess(helperPid, pid),
    )
    const cameras = await this.begin(
      new Cameras(options.cameras, store, media, bus, childLogger(log, 'cameras'), soundOf, () =>
        defaultMode(configuration.get('camera')),
      ),
    )
    await this.begin(new RtspAccess(auth, media, bus, childLogger(log, 'auth')))
    await this.begin(media)
    certificates.use(async ({ certFile, keyFile }) => {
      // A helper that is not there reads the certificate when it comes back.
      if (media.info) await media.call('rtsp.set_certificate', { certificate_file: certFile, key_file: keyFile })
    })
    const catalogue = new Catalogue(store)
    const ages = await this.begin(new PutBackAges(store, catalogue, clock, bus, childLogger(log, 'store')))
    const categoriesFile = data('persistent', 'tag-categories.json')
    const categories = await this.begin(new Categories(store, categoriesFile, bus, childLogger(log, 'recording')))
    const tags = new Tags(store, catalogue, categories, bus)
    // Share links of a stream open no recordings: only accounts are asked.
    const rtspCameras = (user: string) => auth.users.rtspUsers().find(({ name }) => name === user)?.cameras
    await this.begin(new Playback(catalogue, storage, media, rtspCameras))
    await this.begin(new TimeCorrection(store, catalogue, clock, bus, childLogger(log, 'clock')))
    const anyRecording = (): boolean => cameras.list().some(({ id }) => recorder.isRecording(id))
    const places = await this.begin(new Places(store, storage, bus, childLogger(log, 'storage'), anyRecording))
    const removal = await this.begin(new Removal(store, catalogue, storage, bus, childLogger(log, 'recording')))
    const rate = backgroundRate(anyRecording)
    const replication = new Replication(store, catalogue, storage, places, bus, childLogger(log, 'replication'), {
      rate,
      now: () => clock.now(),
    })
    const retention = new Retention(
      store,
      catalogue,
      removal,
      storage,
      clock,
      bus,
      childLogger(log, 'retention'),
      () => ages.limit(configuration.get('storage')),
      (): Promise<number> => files.usedBytes(),
      (id) => replication.waitingFor(id),
    )
    const recorder = await this.begin(
      new Recorder(cameras, media, catalogue, tags, removal, storage, bus, childLogger(log, 'recording'), {
        defaults: () => recordingDefaults(store),
        limits: () => limitsOf(configuration.get('storage')),
        queueFrames: () => recordingQueueSize(store),
        makeRoom: (bytes) => retention.makeRoom(bytes),
        folder: () => ({ devicePath: storage.recordings, hostPath: storage.hostPath(storage.recordings) }),
        space: () => retention.space(),
        keepsPast: (camera): boolean => keepsPast(camera),
        clock,
      }),
    )
    const triggers = await this.begin(new TriggeredRecordings(store, recorder, cameras, bus, childLogger(log, 'triggers')))
    const keepsPast = (camera: number): boolean => configuration.get('camera').pre_roll || triggers.needsPast(camera)
    const bufferBytes = () => recordingBufferSize(store)
    await this.begin(new PreRoll(cameras, media, bus, childLogger(log, 'pre-roll'), keepsPast, bufferBytes))
    const schedule = await this.begin(new RecordingSchedule(store, recorder, cameras, bus, childLogger(log, 'schedule')))
    const files = await this.begin(
      new Files(storage, recorder.library, bus, childLogger(log, 'files'), () => {
        const { max_upload_bytes, quota_bytes } = configuration.get('storage')
        return { maxUploadBytes: max_upload_bytes, quotaBytes: quota_bytes }
      }),
    )
    await this.begin(retention)
    const exports = await this.begin(new Exports(media, store, catalogue, storage, files, bus, childLogger(log, 'export')))
    await this.begin(new Integrity(catalogue, storage, bus, childLogger(log, 'integrity'), rate))
    await this.begin(replication)
    const care = new StorageCare(catalogue, storage, places, replication, clock, rate)
    const snapshots = new Snapshots(cameras, storage, catalogue, bus)
    const state = await this.begin(new State(store, cameras, recorder, snapshots, places, categories, bus))
    const socket = await this.begin(new StateSocket(state, auth, bus, childLogger(log, 'websocket')))
    const settings = [
      // Who may do what is in force before the cameras take their time.
      auth.transfer,
      new SettingsTransfer(store, places, bus),
      new CameraTransfer(cameras),
      new CategoryTransfer(categories),
    ]
    const backups = await this.begin(new Backups(data('backups'), configuration, settings, bus, childLogger(log, 'backup')))
    const agent = new SystemAgent(options.systemSocket)
    const network = new NetworkReader()
    const networkPorts = () => ({ ...portsOf(http), rtsp: [media.rtspPorts.plain], rtsps: [media.rtspPorts.tls] })
    const ports = () => Object.values(portsOf(http)).flat()
    const networkTrials = await this.begin(new NetworkTrials(agent, network, bus, childLogger(log, 'network'), { ports }))
    const appliance = await this.begin(
      new Appliance({ options, agent, store, auth, jobs, backups, media, cameras, bus, log, anyRecording }),
    )
    await cameras.settled(CAMERA_PATIENCE_MS)

    const routes = apiRoutes({
      audit,
      jobs,
      certificates,
      configuration,
      backups,
      state,
      auth,
      cameras,
      recorder,
      triggers,
      schedule,
      media,
      storage,
      system: new SystemReader(),
      snapshots,
      search: new Search(catalogue, tags),
      thumbnails: new Thumbnails(media, storage),
      exports,
      tags,
      files,
      care,
      network,
      networkTrials,
      networkTest: new NetworkSelfTest(network),
      networkPorts,
      updates: appliance.updates,
      updatesConfiguration: appliance.updatesConfiguration,
      factoryReset: appliance.factoryReset,
    })
    const http: HttpServer = new HttpServer({
      listeners: listenersOf(options, certificates.files),
      routes,
      authenticate: (source) => auth.authenticate(source),
      challenges: () => auth.challenges(),
      log: childLogger(log, 'http'),
      assets: new StaticAssets(WEB_ASSETS),
      version: VERSION,
      limits: { stopMs: HTTP_STOP_MS },
      policy: policyOf(configuration.all()),
      rateLimits: () => configuration.get('security').rate_limits,
      websocket: { path: '/api/v1', behaviour: socket as WebSocketBehaviour<unknown> },
    })
    this.started.push({ start: () => {}, stop: () => http.stop() })
    rtsp.wire(media)
    wireConfiguration({ configuration, log, media, cameras, recorder, http })
    certificates.use((files) => http.replaceCertificate(files))
    settlePutBack({ store, bus, jobs, storage, care, log: childLogger(log, 'store') })
    await http.start()
    const ready = readyPorts(http, media)
    await this.begin(new Notify(childLogger(log, 'notify'), () => answers(options.bind, ready.http)))
    appliance.watch(ready.http)
    return ready
  }

  private async begin<C extends Component>(component: C): Promise<C> {
    this.started.push(component)
    await component.start()
    return component
  }
}
