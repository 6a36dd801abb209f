package io.idempotence.benchmarks;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ScopeType;

/** The command that runs measurements, and prints and draws their results. For what they mean, see {@code docs/benchmarks.md}. */
@Command(
        name = "bench",
        sortOptions = false,
        description = "Measures what idempotence costs. Takes minutes; best on a machine that does nothing else.",
        subcommands = {
            AllCommand.class,
            ServerCommand.class,
            RecordCommand.class,
            ClientCommand.class,
            ScaleCommand.class,
            JmhCommand.class
        },
        synopsisSubcommandLabel = "COMMAND")
public final class Benchmarks {
    @Option(names = "--help", usageHelp = true, scope = ScopeType.INHERIT, description = "Print this and exit.")
    boolean help;

    Benchmarks() {}

    /**
     * Runs one command and ends the JVM: 0 if it ran to its end, whatever it measured.
     *
     * @param args see {@code --help}
     */
    public static void main(String[] args) {
        System.exit(new CommandLine(new Benchmarks()).execute(args));
    }
}
