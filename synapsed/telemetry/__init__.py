"""What is measured of the daemon and its agents, for those who watch machines: metrics, and traces of tasks.

Nobody reports here. Both are views: of the event log, and of numbers that the rooms keep of themselves
(`model.figures`). So a metric that is added changes no other room, and one that nobody reads costs next to nothing.
"""
