//! Tasks that wait for their turn.

use std::collections::{BTreeMap, VecDeque};

use super::change_task::{ChangeTask, TaskEnd};

/// Tasks that wait or are under way. Those of a topic follow each other, and topics take turns, so that a task of a topic
/// that takes long keeps no other topic waiting:
///
/// ```text
/// topic a    1 1 1 1 1 1 2      task 1 takes six turns, and task 2 waits for it
/// topic b    3 4                tasks 3 and 4 are done in the first two
/// ```
#[derive(Default)]
pub(super) struct TaskQueues {
    tasks: BTreeMap<String, VecDeque<ChangeTask>>,
    /// Topics that have tasks, in the order of their turns.
    turns: VecDeque<String>,
    /// Number of all tasks.
    count: usize,
}

impl TaskQueues {
    /// Returns the number of all tasks.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns the number of topics that have tasks.
    pub fn topics(&self) -> usize {
        self.turns.len()
    }

    /// Adds a task behind those of its topic.
    pub fn push(&mut self, task: ChangeTask) {
        let tasks = self.tasks.entry(task.topic.clone()).or_default();
        if tasks.is_empty() {
            self.turns.push_back(task.topic.clone());
        }
        tasks.push_back(task);
        self.count += 1;
    }

    /// Takes the tasks of the topic whose turn it is.
    pub fn take_turn(&mut self) -> Option<VecDeque<ChangeTask>> {
        let tasks = self.tasks.remove(&self.turns.pop_front()?)?;
        self.count -= tasks.len();
        Some(tasks)
    }

    /// Gives back what is left of the tasks of a topic after its turn. `is_next`: whether it has the next turn too.
    pub fn give_back(&mut self, tasks: VecDeque<ChangeTask>, is_next: bool) {
        let Some(first) = tasks.front() else { return };
        match is_next {
            true => self.turns.push_front(first.topic.clone()),
            false => self.turns.push_back(first.topic.clone()),
        }
        self.count += tasks.len();
        self.tasks.insert(first.topic.clone(), tasks);
    }

    /// Notes that what the tasks have done so far is durable, and answers those whose time is over.
    pub fn note_durable(&mut self) {
        for tasks in self.tasks.values_mut() {
            tasks.iter_mut().take(1).for_each(ChangeTask::note_durable);
            for _ in 0..tasks.len() {
                match tasks.pop_front() {
                    Some(late) if late.is_late() => {
                        late.reply(TaskEnd::TooSlow);
                        self.count -= 1;
                    }
                    task => tasks.extend(task),
                }
            }
        }
        self.tasks.retain(|_, tasks| !tasks.is_empty());
        self.turns.retain(|topic| self.tasks.contains_key(topic));
    }
}
