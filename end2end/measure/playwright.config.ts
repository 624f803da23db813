/** Measures; it is no part of the tests. `npm run measure` runs it, with GPUSTACK_BIN and FLEET_BIN of a release. */
import { defineConfig } from '@playwright/test';
import tests from '../playwright.config.ts';

export default defineConfig({
  ...tests,
  testDir: '.',
  outputDir: '../test-results',
  timeout: 1_800_000,
  fullyParallel: false,
  workers: 1,
  use: { ...tests.use, screenshot: 'off', trace: 'off' },
});
