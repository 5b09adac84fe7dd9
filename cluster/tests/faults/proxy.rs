//! A proxy between a client and an HDFS, which causes the faults of networks and machines.
//!
//! The name node tells its clients on which ports the data nodes listen. The proxy replaces them by its own
//! ports, so that those bytes pass through it too.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::servers::hdfs::MiniDfs;

const PAUSE: Duration = Duration::from_millis(10);
/// Length of what is passed on at once, in bytes. It is less than a packet, so that packets can be split or
/// cut.
const PART_BYTES: usize = 10_000;

/// Fault in the bytes that a server sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    /// After this many bytes no more come, but the connections stay open.
    Stall(u64),
    /// After this many bytes every connection of the proxy is cut, once.
    Cut(u64),
    /// This many bytes come per second, on each connection.
    Slow(u64),
    /// The header of a packet gives an offset in the block that is too large by `bytes`. With `every`, this
    /// holds for every packet, otherwise for the second packet of each block that is read.
    Shift {
        bytes: i64,
        every: bool,
    },
}

/// A name node and data nodes, each behind a port of the proxy. Its threads end some time after it is
/// dropped.
pub struct Proxy {
    pub uri: String,
    name_node: Arc<Node>,
    data_nodes: Vec<Arc<Node>>,
}

struct Node {
    /// Pairs of a data node's port and the proxy's port for it. Empty for a data node.
    ports: Vec<(u16, u16)>,
    fault: Mutex<Fault>,
    /// Number of bytes that have passed since the fault was set.
    passed: AtomicU64,
    /// Number of packets whose headers were changed.
    damaged: AtomicU64,
    /// Connections of all nodes of the proxy.
    connections: Arc<Mutex<Vec<TcpStream>>>,
    end: Arc<AtomicBool>,
}

impl Proxy {
    pub fn new(cluster: &MiniDfs) -> Self {
        let connections = Arc::new(Mutex::new(Vec::new()));
        let end = Arc::new(AtomicBool::new(false));
        let node = |target: u16, ports: Vec<(u16, u16)>| {
            let fault = Mutex::new(Fault::None);
            let passed = AtomicU64::new(0);
            let damaged = AtomicU64::new(0);
            let (connections, end) = (Arc::clone(&connections), Arc::clone(&end));
            let node = Arc::new(Node { ports, fault, passed, damaged, connections, end });
            let port = Arc::clone(&node).listen(target);
            (node, port)
        };
        let (mut data_nodes, mut ports) = (Vec::new(), Vec::new());
        for &port in &cluster.data_ports {
            let (node, ours) = node(port, Vec::new());
            data_nodes.push(node);
            ports.push((port, ours));
        }
        let port = cluster.uri.rsplit(':').next().unwrap().parse().unwrap();
        let (name_node, port) = node(port, ports);
        Proxy { uri: format!("hdfs://127.0.0.1:{port}"), name_node, data_nodes }
    }

    pub fn name_node(&self, fault: Fault) {
        self.name_node.set(fault);
    }

    pub fn data_node(&self, index: usize, fault: Fault) {
        self.data_nodes[index % self.data_nodes.len()].set(fault);
    }

    pub fn data_nodes(&self, fault: Fault) {
        self.data_nodes.iter().for_each(|node| node.set(fault));
    }

    /// Returns the number of bytes that came from data nodes since their faults were set.
    pub fn passed(&self) -> u64 {
        self.data_nodes.iter().map(|node| node.passed.load(Ordering::Relaxed)).sum()
    }

    /// Returns the number of packets of data nodes whose headers were changed.
    pub fn damaged(&self) -> u64 {
        self.data_nodes.iter().map(|node| node.damaged.load(Ordering::Relaxed)).sum()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.name_node.end.store(true, Ordering::Relaxed);
        self.name_node.cut();
    }
}

impl Node {
    fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
        self.passed.store(0, Ordering::Relaxed);
    }

    fn cut(&self) {
        for connection in self.connections.lock().unwrap().drain(..) {
            // A connection that has ended by itself is fine.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    fn ended(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// Starts to listen, and returns the port.
    fn listen(self: Arc<Self>, target: u16) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        thread::spawn(move || {
            while !self.ended() {
                match listener.accept() {
                    Ok((client, _)) => drop(Arc::clone(&self).connect(client, target)),
                    Err(_) => thread::sleep(PAUSE),
                }
            }
        });
        port
    }

    fn connect(self: Arc<Self>, client: TcpStream, target: u16) -> io::Result<()> {
        client.set_nonblocking(false)?;
        client.set_nodelay(true)?;
        let server = TcpStream::connect(("127.0.0.1", target))?;
        server.set_nodelay(true)?;
        self.connections.lock().unwrap().extend([client.try_clone()?, server.try_clone()?]);
        let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
        thread::spawn(move || {
            // One side has gone; the other one learns of it.
            let _ = if self.ports.is_empty() {
                self.give(&server, &client)
            } else {
                self.answer(&server, &client)
            };
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        });
        Ok(())
    }

    /// Passes on the answers of a name node, with the proxy's ports in them.
    fn answer(&self, mut server: &TcpStream, client: &TcpStream) -> io::Result<()> {
        loop {
            let mut length = [0; 4];
            server.read_exact(&mut length)?;
            let mut message = length.to_vec();
            message.resize(4 + u32::from_be_bytes(length) as usize, 0);
            server.read_exact(&mut message[4..])?;
            for &(theirs, ours) in &self.ports {
                replace(&mut message, &port_fields(theirs), &port_fields(ours));
            }
            self.pass(client, &message)?;
        }
    }

    fn pass(&self, mut client: &TcpStream, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.chunks(PART_BYTES) {
            let length = part.len() as u64;
            let passed = self.passed.fetch_add(length, Ordering::Relaxed) + length;
            let fault = *self.fault.lock().unwrap();
            match fault {
                Fault::Stall(after) if passed > after => self.wait_while(fault),
                Fault::Slow(rate) => {
                    let end = Instant::now() + Duration::from_secs_f64(length as f64 / rate as f64);
                    while Instant::now() < end && !self.ended() {
                        thread::sleep(PAUSE.min(end.saturating_duration_since(Instant::now())));
                    }
                }
                Fault::Cut(after) if passed > after => {
                    self.set(Fault::None);
                    self.cut();
                }
                _ => {}
            }
            client.write_all(part)?;
        }
        Ok(())
    }

    fn wait_while(&self, fault: Fault) {
        while *self.fault.lock().unwrap() == fault && !self.ended() {
            thread::sleep(PAUSE);
        }
    }

    /// Passes on the blocks that a data node sends.
    ///
    /// An answer is a length (varint) and a message. Packets follow it; the last packet of a block has no
    /// data. A packet consists of:
    ///
    /// | bytes | contents |
    /// |---|---|
    /// | 4 | length of itself and of what follows the header |
    /// | 2 | length of the header |
    /// | length of the header | the header: a tag, 8 bytes of offset in the block (little-endian), and more |
    /// | the rest | checksums and data |
    fn give(&self, mut server: &TcpStream, client: &TcpStream) -> io::Result<()> {
        loop {
            let mut answer = vec![0];
            server.read_exact(&mut answer)?;
            while answer[answer.len() - 1] & 0x80 != 0 {
                answer.push(0);
                let at = answer.len() - 1;
                server.read_exact(&mut answer[at..])?;
            }
            let start = answer.len();
            let length = answer.iter().rev().fold(0, |length, &byte| length << 7 | usize::from(byte & 0x7F));
            answer.resize(start + length, 0);
            server.read_exact(&mut answer[start..])?;
            self.pass(client, &answer)?;
            for packet_number in 0.. {
                let mut packet = vec![0; 6];
                server.read_exact(&mut packet)?;
                let body = u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]]) as usize - 4;
                let header = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
                packet.resize(6 + header + body, 0);
                server.read_exact(&mut packet[6..])?;
                assert_eq!(packet[6], 0x09, "the header does not begin with the offset");
                let fault = *self.fault.lock().unwrap();
                if let Fault::Shift { bytes, every } = fault
                    && body > 0
                    && (every || packet_number == 1)
                {
                    let offset = i64::from_le_bytes(packet[7..15].try_into().unwrap());
                    packet[7..15].copy_from_slice(&offset.wrapping_add(bytes).to_le_bytes());
                    self.damaged.fetch_add(1, Ordering::Relaxed);
                }
                self.pass(client, &packet)?;
                if body == 0 {
                    break;
                }
            }
        }
    }
}

/// Returns a data node's port between the tags of its own field and the next, `xferPort` and `infoPort` of
/// `DatanodeIDProto`.
fn port_fields(port: u16) -> [u8; 5] {
    assert!(port >= 1 << 14, "its varint has not three bytes");
    [0x20, port as u8 | 0x80, (port >> 7) as u8 | 0x80, (port >> 14) as u8, 0x28]
}

fn replace(message: &mut [u8], old: &[u8; 5], new: &[u8; 5]) {
    for at in 0..message.len().saturating_sub(4) {
        if message[at..at + 5] == *old {
            message[at..at + 5].copy_from_slice(new);
        }
    }
}
