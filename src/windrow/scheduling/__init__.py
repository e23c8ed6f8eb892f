"""When queries are executed, and which of them together (thesis 8.4): tasks with deadlines, policies, a simulator.

It knows nothing of engines, Spark or SQL: a task is a name, a period in synopsis updates, a window and a group.
"""
