// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// within gives work so long, and then aborts it. Headlamp's own timeout ends with the headers of an answer, so that the
// body might never come to an end.
export async function within<T>(work: (signal: AbortSignal) => Promise<T>, milliseconds: number): Promise<T> {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`the whole answer has not come within ${milliseconds / 1000} seconds`));
      controller.abort();
    }, milliseconds);
  });
  try {
    return await Promise.race([work(controller.signal), late]);
  } finally {
    clearTimeout(timer);
  }
}
