//! Tests of jobs of several processes, on this machine, over ssh, and on several hosts.

mod hosts;
mod launch;
