// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { defineConfig } from 'vitest/config';

// test/headlamp runs this against a real API server.
export default defineConfig({
  root: new URL('../..', import.meta.url).pathname,
  test: {
    include: ['test/browser/*.test.ts'],
    globalSetup: 'test/browser/setup.ts',
    reporters: ['verbose'],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // One story: later tests see what earlier ones made.
    fileParallelism: false,
  },
});
