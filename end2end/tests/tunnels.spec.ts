import { Api, until } from '../support/api.ts';
import type { Server } from '../support/lab.ts';
import { broken, type Certificate, PlayedAgent, reporting, serverHere, toWorker } from '../support/played-agent.ts';
import { expect, hydrated, logIn, type Page, test } from '../support/test.ts';

const day = 86_400_000;

function certificate(keyFile: string, beganAgo: number, left: number): Certificate {
  const now = Date.now();
  return {
    key_file: keyFile,
    public_key: 'ssh-ed25519 AAAA',
    certificate: {
      key_id: 'bastion-01@ops',
      serial: 7,
      principals: ['root'],
      authority: 'SHA256:Nh0Me49Zh9fDw/VYUfq43IJmI1T+XrjiYONPND8GzaM',
      valid_after_ms: now - beganAgo,
      valid_before_ms: now + left,
    },
  };
}

test('a server without agents says what they are and how to begin', async ({ page, lab }) => {
  const server = await lab.server();
  await logIn(page, server.url);
  await page.getByRole('link', { name: 'Tunnels' }).click();
  await expect(page.getByRole('heading', { name: 'No tunnel agent yet' })).toBeVisible();
  await expect(page.getByText('gpustack tunnel run --config tunnels.yaml')).toBeVisible();
  await page.getByRole('link', { name: 'Write a tunnels.yaml' }).click();
  await page.getByLabel('Worker name').fill('npu-198-97');
  await page.getByLabel('Worker’s host, from the bastion').fill('root@10.20.0.20');
  await page.getByLabel('Server’s host, from the bastion').fill('root@10.0.0.1');
  await page.getByRole('textbox', { name: 'Bastion (optional)' }).fill('ops@bastion-07');
  const file = page.locator('#join-agent-file');
  await expect(file).toContainText('id: bastion-07');
  await expect(file).toContainText('npu-198-97: {ssh: root@10.20.0.20}');
  await expect(file).not.toContainText('health_check');
  await page.getByLabel('second forward').check();
  await expect(file).toContainText('npu-198-97: {ssh: root@10.20.0.20, health_check: true, health_port: ');
  await expect(file).toContainText(', ssh: root@10.0.0.1}');
});

test.describe('in another time zone', () => {
  test.use({ timezoneId: 'Asia/Shanghai' });

  test('times are those of the reader, once the browser has told its zone', async ({ page, lab }) => {
    const server = await lab.server();
    await PlayedAgent.join(lab, server, 'bastion-01', reporting([serverHere()]));
    await logIn(page, server.url);
    await page.goto(`${server.url}/tunnels`);
    const since = page.locator('.forwards-table time').first();
    await expect(since).toHaveAttribute('title', / UTC\+8$/);
    await expect(since).not.toContainText('UTC');
  });
});

test('the page shows what agents tell, follows it, and keeps what a gone one told last', async ({ page, lab }) => {
  test.setTimeout(150_000);
  const server = await lab.server();
  const ways = [serverHere(), toWorker('npu-1', 21), toWorker('npu-2', 22)];
  const certificates = [certificate('/root/.ssh/id_ed25519', 20 * day, 70 * day), certificate('/root/.ssh/old', 80 * day, 10 * day)];
  const agent = await PlayedAgent.join(lab, server, 'bastion-01', reporting(ways, { certificates }));
  await logIn(page, server.url);
  await page.getByRole('link', { name: 'Tunnels' }).click();
  const row = page.locator('.forwards-table > tbody > tr').filter({ hasText: 'npu-2.server' });
  await expect(row).toContainText('Up');
  await expect(row).toContainText('3.4 ms');
  await expect(row).toContainText('99.93 %');
  await expect(page.locator('.certificates-table tr').filter({ hasText: '/root/.ssh/old' })).toContainText('Expires soon');

  await agent.report(reporting([serverHere(), toWorker('npu-1', 21), broken(toWorker('npu-2', 22))], { certificates, refused_config: 'tunnels.yaml:7: <img src=x onerror=alert(1)>' }));
  await expect(row).toContainText('Down', { timeout: 30_000 });
  await expect(row).toContainText('10.20.0.22:22 does not answer: nothing comes back.');
  await row.getByText('2 cuts').click();
  await expect(row).toContainText('goes on');
  await expect(page.getByText('tunnels.yaml:7: <img src=x onerror=alert(1)>')).toBeVisible();
  await expect(page.locator('main img')).toHaveCount(0);
  await expect(page.locator('.topology').getByRole('link', { name: 'npu-2' })).toContainText('Down');

  await page.getByRole('link', { name: 'In trouble' }).click();
  await expect(page).toHaveURL(/state=trouble/);
  await expect(page.locator('.forwards-table > tbody > tr')).toHaveCount(1);
  await page.goto(`${server.url}/tunnels?sort=round_trip`);
  await hydrated(page);
  await page.locator('select[name=worker]').selectOption('npu-1');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.waitForURL(/sort=round_trip.*worker=npu-1/);
  await hydrated(page);
  await expect(page.locator('.forwards-table > tbody > tr')).toHaveCount(1);
  await expect(page.locator('.forwards-table')).toContainText('npu-1.server');

  await agent.vanish();
  await page.goto(`${server.url}/tunnels`);
  await hydrated(page);
  await expect(row).toContainText('Last known: Down', { timeout: 30_000 });
  await expect(page.locator('.tunnel-agents')).toContainText('Not connected since');
  await page.locator('.tunnel-agents').getByText('Delete', { exact: true }).click();
  await page.getByRole('button', { name: 'Delete bastion-01' }).click();
  await expect(page.getByRole('heading', { name: 'No tunnel agent yet' })).toBeVisible();
});

test('banner and worker page name the tunnel that cuts a worker off', async ({ page, lab }, info) => {
  test.setTimeout(180_000);
  const server = await lab.server({ args: ['--worker-offline-timeout', '30'] });
  const api = await Api.logIn(server);
  const fleet = await lab.fleet(server, 2, ['--name-prefix', 'npu']);
  const all = ['npu-00000', 'npu-00001'];
  const agent = await PlayedAgent.join(lab, server, 'bastion-01', reporting([serverHere(), ...all.map(name => toWorker(name))]));
  await logIn(page, server.url);
  await fleet.kill();
  await agent.report(reporting([serverHere(), broken(toWorker('npu-00000')), toWorker('npu-00001')]));
  await until('it is known why', async () => {
    const [cut, lost] = [await api.worker('npu-00000'), await api.worker('npu-00001')];
    const isKnown = cut?.conditions[0]?.reason === 'tunnel_down' && lost?.conditions[0]?.reason === 'heartbeat_lost';
    return isKnown ? true : undefined;
  }, 90_000);
  const line = (name: string, sentence: string) => page.locator('.banner-line').filter({ hasText: name }).filter({ hasText: sentence });
  const cut = line('npu-00000', ': npu-00000.server of bastion-01.');
  await expect(cut).toContainText('Tunnel down since', { timeout: 30_000 });
  await expect(line('npu-00001', 'No heartbeat')).toBeVisible();
  await page.screenshot({ path: info.outputPath('banner-1440.png') });
  await cut.getByRole('link', { name: 'npu-00000' }).click();
  const tunnels = page.locator('.worker-tunnel');
  await expect(tunnels.filter({ hasText: 'npu-00000.server' })).toContainText('Down');
  await expect(tunnels.filter({ hasText: 'Server\'s port to the agent' })).toContainText('Up');
  await expect(page.getByRole('heading', { name: 'Events' })).toBeVisible();
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await page.screenshot({ path: info.outputPath(`worker-${width}.png`), fullPage: true });
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.getByRole('button', { name: '中文' }).click();
  await expect(tunnels.filter({ hasText: 'npu-00000.server' })).toContainText('中断', { timeout: 30_000 });
});

test('the page fits the window, whatever is on it', async ({ page, lab }, info) => {
  test.setTimeout(300_000);
  const server = await lab.server();
  await logIn(page, server.url);
  await look(page, server, 'empty', info.outputPath.bind(info));
  const names = Array.from({ length: 60 }, (_, number) => `npu-198-${number + 10}`);
  const many = names.map((name, number) => toWorker(name, number + 10));
  await PlayedAgent.join(lab, server, 'bastion-01', reporting([serverHere(), ...many], { certificates: [certificate('/root/.ssh/id_ed25519', 20 * day, 70 * day)] }));
  await look(page, server, 'filled', info.outputPath.bind(info));
  const ill = many.map((forward, number) => (number % 25 === 7 ? broken(forward) : forward));
  const slow = { hop: 'root@10.21.0.5:22', reason: 'wrong_worker', params: { expected: 'gpu-7', answered: 'gpu-8' } };
  const degraded = { ...toWorker('gpu-7', 5), state: 'degraded' as const, fault: slow };
  const stale = { hop: 'root@10.21.0.6:22', reason: 'stale_listener', params: { address: '127.0.0.1:8090', waited_s: 40 } };
  const waiting = { ...broken(toWorker('gpu-9', 6)), fault: stale };
  await PlayedAgent.join(lab, server, 'bastion-02', reporting([serverHere(), degraded, waiting, toWorker('gpu-10', 7)], {
    certificates: [certificate('/root/.ssh/id_ed25519', 80 * day, 9 * day), certificate('/root/.ssh/id_old', 90 * day, -day)],
    refused_config: 'tunnels.yaml:7: worker "gpu-11" has no ssh',
  }));
  const gone = await PlayedAgent.join(lab, server, 'bastion-03', reporting([serverHere(), ...ill.slice(0, 9).map(forward => ({ ...forward, id: `b3.${forward.id}` }))]));
  await page.goto(`${server.url}/tunnels?agent=bastion-03`);
  await expect(page.locator('.forwards-table')).toContainText('b3.', { timeout: 30_000 });
  await gone.vanish();
  await look(page, server, 'trouble', info.outputPath.bind(info));
});

async function look(page: Page, server: Server, what: string, path: (name: string) => string): Promise<void> {
  for (const language of ['en', 'zh-CN']) {
    for (const theme of ['light', 'dark']) {
      const cookies = { gpustack_language: language, gpustack_theme: theme };
      await page.context().addCookies(Object.entries(cookies).map(([name, value]) => ({ name, value, url: server.url })));
      for (const width of [1440, 390]) {
        await page.setViewportSize({ width, height: width > 1000 ? 900 : 844 });
        await page.goto(`${server.url}/tunnels`);
        await hydrated(page);
        await expect(page.locator('html')).toHaveAttribute('lang', language);
        await page.screenshot({ path: path(`tunnels-${what}-${language}-${theme}-${width}.png`), fullPage: true });
        const [content, window_] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
        expect(content, `${what} ${language} ${theme} ${width}`).toBeLessThanOrEqual(window_ ?? 0);
      }
    }
  }
}
