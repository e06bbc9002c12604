// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { Alert, Box, CircularProgress, Typography, useTheme } from '@mui/material';
import { type ReactNode, useEffect, useState } from 'react';
import { ago, type Followed } from '../model/staleness';
import { useTones } from './Bars';

// useNow returns the time, and has the component drawn again every so often.
export function useNow(everyMilliseconds = 5000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMilliseconds);
    return () => clearInterval(timer);
  }, [everyMilliseconds]);
  return now;
}

// Time is a moment in the reader's own time, with its age.
export function Time({ at }: { at: string | undefined }) {
  const now = useNow();
  if (!at) {
    return <>unknown</>;
  }
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      {ago(at, now)} ago
    </time>
  );
}

type Severity = 'info' | 'success' | 'warning' | 'error';

// Note says something that needs attention. Its colours are those of bars, because some of Headlamp's can't be seen on its own background.
export function Note({ severity, children }: { severity: Severity; children: ReactNode }) {
  const tones = useTones();
  const info = useTheme().palette.info.main;
  const colour = { success: tones.good, warning: tones.near, error: tones.full, info }[severity];
  return (
    <Alert
      severity={severity}
      variant="outlined"
      role={severity === 'error' ? 'alert' : 'status'}
      sx={{
        my: 1,
        color: 'text.primary',
        borderColor: 'divider',
        borderLeft: `4px solid ${colour}`,
        overflowWrap: 'anywhere',
        '& .MuiAlert-icon': { color: colour },
        '& .MuiAlert-message': { minWidth: 0 },
      }}
    >
      {children}
    </Alert>
  );
}

interface StatesProps {
  of: Followed<unknown>;
  // What is listed, such as "ClusterResourceQuotas".
  what: string;
  // What to say if there are none.
  empty: ReactNode;
  // What to say to somebody who may not read them.
  denied?: ReactNode;
  children: ReactNode;
}

// States shows children once there is something to show, and says what is the matter if there isn't, or if it is stale.
export function States({ of, what, empty, denied, children }: StatesProps) {
  const now = useNow();
  switch (of.phase) {
    case 'loading':
      return (
        <Box role="status" sx={{ display: 'flex', alignItems: 'center', gap: 2, p: 2 }}>
          <CircularProgress size={24} aria-hidden />
          <Typography>Loading {what}</Typography>
        </Box>
      );
    case 'denied':
      return <Note severity="info">{denied ?? <>You may not read {what}.</>}</Note>;
    case 'missing':
      return <Note severity="warning">The cluster serves no {what}: the shared quota operator isn’t installed.</Note>;
    case 'failed':
      return (
        <Note severity="error">
          The API server doesn’t answer: {of.error}. The next attempt follows by itself.
        </Note>
      );
    default:
      return (
        <>
          {of.phase === 'stale' && (
            <Note severity="warning">
              Stale: the API server was last heard {ago(of.heardAt, now)} ago ({of.error}). The figures are of then.
            </Note>
          )}
          {of.truncated && <Note severity="warning">There are more {what} than these; the rest is left out.</Note>}
          {of.items.length === 0 ? <Note severity="info">{empty}</Note> : children}
        </>
      );
  }
}
