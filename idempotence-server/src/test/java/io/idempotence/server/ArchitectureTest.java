package io.idempotence.server;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import java.util.Date;

/** The allowed dependencies between the packages of this module. */
@AnalyzeClasses(packages = "io.idempotence", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
    @ArchTest
    static final ArchRule onlyRedisStorageUsesTheRedisDriver = noClasses()
            .that()
            .resideOutsideOfPackage("io.idempotence.server.redis..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("redis.clients..", "org.apache.commons.pool2..");

    @ArchTest
    static final ArchRule onlyServletPackageUsesServlets = noClasses()
            .that()
            .resideOutsideOfPackage("io.idempotence.server.servlet..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("jakarta.servlet..");

    @ArchTest
    static final ArchRule onlyMetricsUseMicrometer = noClasses()
            .that()
            .resideOutsideOfPackage("io.idempotence.server.metrics..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("io.micrometer..", "io.idempotence.server.metrics..");

    @ArchTest
    static final ArchRule nothingDependsOnRedisStorage = noClasses()
            .that()
            .resideOutsideOfPackage("io.idempotence.server.redis..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("io.idempotence.server.redis..");

    @ArchTest
    static final ArchRule nothingDependsOnServlets = noClasses()
            .that()
            .resideOutsideOfPackage("io.idempotence.server.servlet..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("io.idempotence.server.servlet..");

    @ArchTest
    static final ArchRule storageDependsOnNothingElseOfTheServer = classes()
            .that()
            .resideInAPackage("io.idempotence.server.storage..")
            .should()
            .onlyDependOnClassesThat()
            .resideInAnyPackage(
                    "io.idempotence",
                    "io.idempotence.internal",
                    "io.idempotence.server.storage..",
                    "java..",
                    "org.jspecify..");

    /** The storage's clock decides: a host whose clock is an hour off must behave as any other. {@code System.nanoTime} only measures. */
    @ArchTest
    static final ArchRule serverNeverReadsTheHostClock = noClasses()
            .that()
            .resideInAPackage("io.idempotence.server..")
            .and()
            // Time since the start of the process, for the storage that ends with it.
            .doNotHaveSimpleName("MonotonicClock")
            .should()
            .callMethodWhere(describe(
                    "asks the host for the time",
                    call -> (call.getTargetOwner().isEquivalentTo(System.class)
                                    && call.getName().equals("currentTimeMillis"))
                            || (call.getTargetOwner().getPackageName().equals("java.time")
                                    && call.getName().matches("now|system.*"))))
            .orShould()
            .callConstructor(Date.class);

    /** The JDK's scheduler thread outlives a web application, and its context class loader is that of its first user. */
    @ArchTest
    static final ArchRule nobodyStartsThreadsOfTheJdk = noClasses()
            .that()
            .resideInAPackage("io.idempotence.server..")
            .should()
            .callMethodWhere(describe(
                    "runs on a thread that the JDK shares",
                    call -> call.getTargetOwner().isAssignableTo(java.util.concurrent.CompletionStage.class)
                            && call.getName().matches("orTimeout|completeOnTimeout|delayedExecutor|.*Async")));

    @ArchTest
    static final ArchRule packagesHaveNoCycles =
            slices().matching("io.idempotence.(**)").should().beFreeOfCycles();
}
