package io.idempotence.server;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/** The arrows between the packages of this module. */
@AnalyzeClasses(packages = "io.idempotence", importOptions = ImportOption.DoNotIncludeTests.class)
class ArchitectureTest {
    @ArchTest
    static final ArchRule onlyRedisStorageKnowsTheRedisDriver = noClasses()
            .that()
            .resideOutsideOfPackage("io.idempotence.server.redis..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("redis.clients..", "org.apache.commons.pool2..");

    @ArchTest
    static final ArchRule onlyServletPackageKnowsServlets = noClasses()
            .that()
            .resideOutsideOfPackage("io.idempotence.server.servlet..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("jakarta.servlet..");

    @ArchTest
    static final ArchRule onlyMetricsKnowMicrometer = noClasses()
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
    static final ArchRule storageKnowsNothingElseOfTheServer = classes()
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

    @ArchTest
    static final ArchRule packagesHaveNoCycles =
            slices().matching("io.idempotence.(**)").should().beFreeOfCycles();
}
