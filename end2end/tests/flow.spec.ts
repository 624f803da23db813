import { symlink } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { bannerLine, card, expectState } from '../support/fleet-page.ts';
import { freePort, type Lab, type Server } from '../support/lab.ts';
import { program } from '../support/machine.ts';
import { expect, fillLogin, hydrated, open, test } from '../support/test.ts';

const password = 'Copper-Lantern-77';
const name = 'npu-198-97';

test('a worker joins by the command of the page, is lost when it is killed, and comes back', async ({ page, lab }) => {
  test.setTimeout(180_000);
  const server = await lab.server({ password: null, args: ['--worker-offline-timeout', '30'] });
  await test.step('log in with the printed password and change it', async () => {
    const [, printed = ''] = await server.program.printed(/Password +(\S+)/);
    await open(page, server.url);
    await fillLogin(page, printed);
    await page.waitForURL(/\/settings\/password$/);
    await hydrated(page);
    await page.getByLabel('Current password').fill(printed);
    await page.getByLabel('New password', { exact: true }).fill(password);
    await page.getByLabel('New password, again').fill(password);
    await page.getByRole('button', { name: 'Change password' }).click();
    await page.waitForURL(/\/workers$/);
    await expect(page.getByText('No workers yet')).toBeVisible();
  });

  const command = await test.step('read the command from the page', async () => {
    await page.getByRole('link', { name: 'Add worker' }).first().click();
    await page.getByText('Binary', { exact: true }).click();
    await page.getByLabel('Worker name').fill(name);
    const shown = page.locator('#join-command');
    await expect(shown).toContainText(`--worker-name ${name}`);
    await expect(shown).not.toContainText('--worker-port');
    await expect(page.getByText('Only the server’s own host can use this address.')).toBeVisible();
    return await shown.innerText();
  });

  const host = await newHost(lab);
  const worker = await test.step('run it, and watch the worker arrive', async () => {
    const started = host.run(command);
    const arrival = page.getByRole('listitem').filter({ hasText: name });
    await expect(arrival.first()).toContainText('8 × 910B3', { timeout: 45_000 });
    return started;
  });

  await test.step('its card is Ready with eight devices', async () => {
    await page.getByRole('link', { name: 'Workers' }).first().click();
    await expectState(card(page, name), 'ready', 45_000);
    await expect(card(page, name)).toContainText('8 × 910B3 · 64 GiB');
    await expect(card(page, name).locator('.device-bars').first()).toBeVisible();
  });

  await test.step('killed, it is Not ready for want of heartbeats', async () => {
    await worker.kill();
    await expectState(card(page, name), 'not_ready', 60_000);
    await expect(bannerLine(page, name)).toContainText('No heartbeat for');
    await expect(page).toHaveTitle(/^\(1\)/);
  });

  await test.step('started again, it is the same worker and Ready', async () => {
    host.run(command);
    await expectState(card(page, name), 'ready', 60_000);
    await expect(page.locator('li.card')).toHaveCount(1);
    await expect(bannerLine(page, name)).toHaveCount(0);
  });
  await expectFirstPasswordGone(server);
});

/** A host with eight NPUs, a data directory of its own, and `gpustack` on its PATH. */
async function newHost(lab: Lab) {
  const [{ env }, programs, dataDir] = [await lab.hostWithNpus('normal'), await lab.folder(), await lab.folder()];
  const port = String(await freePort());
  await symlink(program('gpustack'), join(programs, 'gpustack'));
  const PATH = [programs, env['PATH']].join(delimiter);
  const hostEnv = { ...env, PATH, GPUSTACK_DATA_DIR: dataDir, GPUSTACK_WORKER_PORT: port };
  return { run: (command: string) => lab.start('worker', { command: 'sh', args: ['-c', command], env: hostEnv }) };
}

async function expectFirstPasswordGone(server: Server): Promise<void> {
  await expect(server.file('initial_admin_password')).rejects.toThrow('ENOENT');
}
